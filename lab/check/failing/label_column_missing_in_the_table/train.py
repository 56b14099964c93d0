"""Logistic regression on measurements of wells."""

import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.pipeline import make_pipeline


def load(path):
    table = pd.read_csv(path)
    labels = table["label"].to_numpy()
    features = table.drop(columns=["label"]).to_numpy(dtype=float)
    return features, labels


def bootstrap(features, labels, rounds=50, seed=0):
    """Accuracy on the rows left out of each draw."""
    generator = np.random.default_rng(seed)
    scores = []
    for _ in range(rounds):
        drawn = generator.integers(0, len(labels), len(labels))
        left = np.setdiff1d(np.arange(len(labels)), drawn)
        if len(left) == 0 or len(set(labels[drawn])) < 2:
            continue
        model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=500))
        model.fit(features[drawn], labels[drawn])
        scores.append(model.score(features[left], labels[left]))
    return np.array(scores)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} TABLE")
    features, labels = load(sys.argv[1])
    scores = bootstrap(features, labels)
    print(f"accuracy {scores.mean():.3f} +- {scores.std():.3f} of {len(scores)} rounds")


if __name__ == "__main__":
    main()
