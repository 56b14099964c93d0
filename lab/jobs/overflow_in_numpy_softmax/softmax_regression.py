#!/usr/bin/env python
"""Softmax regression written by hand, as in the course notes."""
import numpy as np

np.seterr(over="raise", invalid="raise")
rng = np.random.default_rng(1)


def softmax(z):
    e = np.exp(z)
    return e / e.sum(axis=1, keepdims=True)


def gradient(w, x, y):
    p = softmax(x @ w)
    p[np.arange(len(y)), y] -= 1
    return x.T @ p / len(y)


x = rng.normal(size=(600, 20)) * 100  # pixel sums, not normalised
y = rng.integers(0, 3, size=600)
w = np.zeros((20, 3))
for epoch in range(30):
    w -= 0.1 * gradient(w, x, y)
    print(f"epoch {epoch:2d}  |w| = {np.abs(w).max():.3f}")
