"""Fits a forest and reports its confusions."""

import argparse

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split


def load(rows, n_classes):
    features, labels = make_classification(
        n_samples=rows,
        n_features=30,
        n_informative=12,
        n_classes=n_classes,
        random_state=0,
    )
    return train_test_split(features, labels, test_size=0.25, random_state=0)


def confusion(truth, predicted, size):
    counts = np.zeros((size, size), dtype=int)
    np.add.at(counts, (truth, predicted), 1)
    return counts


def report(model, features, labels):
    predicted = model.predict(features)
    counts = confusion(labels, predicted, n_classes)
    recall = counts.diagonal() / counts.sum(1).clip(min=1)
    for number, value in enumerate(recall):
        print(f"class {number}: recall {value:.3f}")
    print(f"accuracy {counts.trace() / counts.sum():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--trees", type=int, default=100)
    args = parser.parse_args()
    train_x, test_x, train_y, test_y = load(args.rows, args.classes)
    model = RandomForestClassifier(n_estimators=args.trees, n_jobs=-1, random_state=0)
    model.fit(train_x, train_y)
    report(model, test_x, test_y)


if __name__ == "__main__":
    main()
