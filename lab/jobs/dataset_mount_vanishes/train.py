import argparse
import pathlib
import time

import numpy as np


def load(folder, shard):
    return np.load(folder / f"shard_{shard}.npy")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    folder = parser.parse_args().data
    w = np.zeros(8)
    for epoch in range(4):
        for shard in range(6):
            x = load(folder, shard)
            w -= 0.001 * x.T @ (x @ w - x.sum(1)) / len(x)
            time.sleep(0.1)
        print(f"epoch {epoch} weights {w.mean():.4f}", flush=True)
        pathlib.Path(f"epoch_{epoch}").touch()


if __name__ == "__main__":
    main()
