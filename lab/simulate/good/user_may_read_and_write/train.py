import argparse
import csv

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--test", default="")
options = parser.parse_args()


def rows(path):
    with open(path, newline="") as file:
        return [(float(row["a"]), float(row["b"]), int(row["label"])) for row in csv.DictReader(file)]


train = rows(options.data)
weights = [0.0, 0.0]
for epoch in range(3):
    for a, b, label in train:
        error = label - (weights[0] * a + weights[1] * b)
        weights = [weights[0] + 0.1 * error * a, weights[1] + 0.1 * error * b]
    print(f"epoch {epoch + 1}/3", flush=True)
if options.test:
    test = rows(options.test)
    right = sum((weights[0] * a + weights[1] * b > 0.5) == label for a, b, label in test)
    print(f"accuracy {right / len(test):.3f}")
