#!/usr/bin/env python3
"""Train a sentiment perceptron on top of the word vectors that come with the repository."""
import pickle
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = [("wonderful film", 1), ("boring story", 0), ("great actors", 1), ("terrible sound", 0)]


def load_vectors():
    path = HERE / "vectors.pkl"
    print(f"Loading {path.name} ({path.stat().st_size} bytes)")
    with path.open("rb") as f:
        return pickle.load(f)


vectors = load_vectors()
weights = [0.0] * len(next(iter(vectors.values())))
for epoch in range(5):
    errors = 0
    for text, label in SAMPLES:
        features = [sum(column) for column in zip(*(vectors[word] for word in text.split()))]
        step = label - (sum(w * f for w, f in zip(weights, features)) > 0)
        errors += step != 0
        weights = [w + 0.1 * step * f for w, f in zip(weights, features)]
    print(f"epoch {epoch}: {errors} errors")
