"""Train, then run the official scorer, which must answer within five seconds."""
import logging
import subprocess
import sys

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s pipeline %(levelname)s %(message)s")


def train(epochs=5):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(500, 4)), np.zeros(4)
    for epoch in range(epochs):
        w -= 0.1 * x.T @ (x @ w - x[:, 0]) / 500
        logging.info("epoch %d done", epoch)
    np.savetxt("predictions.txt", x @ w)


def score(path):
    logging.info("scoring %s", path)
    result = subprocess.run(
        [sys.executable, "score.py", path], capture_output=True, text=True, timeout=5, check=True
    )
    return float(result.stdout)


train()
logging.info("score %.4f", score("predictions.txt"))
