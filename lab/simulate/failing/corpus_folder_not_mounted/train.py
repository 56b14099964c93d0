import os
import sys

words = 0
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name)) as file:
        words += len(file.read().split())
print(f"{words} words")
