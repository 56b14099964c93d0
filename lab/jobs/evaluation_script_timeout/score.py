"""Pairwise ranking score; compares every pair with every other pair."""
import sys

values = [float(line) for line in open(sys.argv[1])]
wins = 0
for a in values:
    for b in values:
        for c in values:
            wins += a < b < c
print(wins / len(values) ** 3)
