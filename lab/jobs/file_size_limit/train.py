import argparse
import sys

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint")
parser.add_argument("--epochs", type=int, default=6)
args = parser.parse_args()


class Embedding:
    def __init__(self, rows, dim):
        self.table = np.random.default_rng(0).normal(size=(rows, dim)).astype(np.float32)

    def grow(self, rows):
        fresh = np.zeros((rows, self.table.shape[1]), dtype=np.float32)
        self.table = np.concatenate([self.table, fresh])

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.table.tobytes())


vocabulary = Embedding(20_000, 64)
for epoch in range(args.epochs):
    vocabulary.grow(15_000)
    vocabulary.save(args.checkpoint)
    sys.stdout.write(f"epoch {epoch}: {len(vocabulary.table)} words, checkpoint written\n")
