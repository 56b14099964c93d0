numbers = [int(line) for line in open("data/numbers.txt")]
print("mean", sum(numbers) / len(numbers))
