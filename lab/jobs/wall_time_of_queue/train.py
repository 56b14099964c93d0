import argparse
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()
rng = np.random.default_rng(0)
w = np.zeros(50)
for epoch in range(args.epochs):
    x = rng.normal(size=(2000, 50))
    w -= 0.05 * x.T @ (x @ w - x.sum(1)) / len(x)
    print(f"epoch {epoch + 1}/{args.epochs} error {np.abs(w - 1).max():.5f}")
    time.sleep(0.5)
