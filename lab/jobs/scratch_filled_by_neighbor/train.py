import argparse
import logging
import shutil
import time

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")


def save(folder, epoch, weights):
    np.savez(f"{folder}/epoch_{epoch}.npz", weights=weights)
    log.info("saved epoch %d, %.1f MB free", epoch, shutil.disk_usage(folder).free / 1e6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    folder = parser.parse_args().scratch
    weights = np.zeros((128, 256))
    for epoch in range(6):
        weights += np.random.default_rng(epoch).normal(size=weights.shape)
        save(folder, epoch, weights)
        time.sleep(0.5)
    log.info("done")


if __name__ == "__main__":
    main()
