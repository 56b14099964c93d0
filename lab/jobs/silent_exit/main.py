import sys

import numpy as np


def load(name):
    with open(name) as f:
        return np.loadtxt(f, delimiter=",")


def train(x, epochs):
    w = np.zeros(x.shape[1])
    for epoch in range(epochs):
        w += 0.1 * (x.mean(0) - w)
        print("epoch", epoch, "norm", round(float(np.linalg.norm(w)), 4))
    return w


def evaluate(w):
    test = load("test.csv")
    print("distance", np.linalg.norm(test.mean(0) - w))


if __name__ == "__main__":
    weights = train(np.random.default_rng(0).normal(size=(100, 8)), 5)
    print("evaluating")
    try:
        evaluate(weights)
    except Exception:
        sys.exit(1)
