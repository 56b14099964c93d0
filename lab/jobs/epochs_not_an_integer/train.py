import os

import numpy as np


class Settings:
    def __init__(self, env):
        self.learning_rate = float(env.get("LEARNING_RATE", "0.1"))
        self.epochs = int(env.get("NUM_EPOCHS", "10"))


def train(settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3))
    y = x @ np.array([1.0, 2.0, 3.0])
    w = np.zeros(3)
    for epoch in range(settings.epochs):
        w -= settings.learning_rate * x.T @ (x @ w - y) / len(y)
        print(f"epoch {epoch} weights {w.round(2)}")


if __name__ == "__main__":
    train(Settings(os.environ))
