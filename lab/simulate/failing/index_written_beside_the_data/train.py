import sys

with open(sys.argv[1]) as file:
    offsets = [len(line) for line in file]
with open(sys.argv[1] + ".index", "w") as file:
    file.write(" ".join(map(str, offsets)))
print(f"indexed {len(offsets)} lines")
