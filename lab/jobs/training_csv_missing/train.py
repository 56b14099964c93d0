import argparse
import csv
import random


def read_table(path):
    with open(path, newline="") as handle:
        return [[float(cell) for cell in row] for row in csv.reader(handle)]


def perceptron(rows, epochs, lr):
    weights = [random.random() for _ in rows[0]]
    for epoch in range(epochs):
        errors = 0
        for *features, label in rows:
            activation = sum(w * f for w, f in zip(weights, features + [1.0]))
            step = label - (activation > 0)
            errors += step != 0
            weights = [w + lr * step * f for w, f in zip(weights, features + [1.0])]
        print(f"epoch {epoch}: {errors} errors")
    return weights


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", default="/data/banknotes")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    print("Arguments:", vars(args))
    table = read_table(f"{args.data_dir}/train.csv")
    print(perceptron(table, args.epochs, args.lr))
