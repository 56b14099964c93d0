import sys

files = [open(sys.argv[1]) for _ in range(200)]
print(sum(len(file.read()) for file in files))
