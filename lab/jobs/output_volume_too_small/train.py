import argparse
import logging
import shutil

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")


def save(folder, weights):
    free = shutil.disk_usage(folder).free
    log.info("saving %.1f MB, %.1f MB free", weights.nbytes / 1e6, free / 1e6)
    with open(f"{folder}/model.bin", "wb") as file:
        file.write(weights.tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    folder = parser.parse_args().output
    weights = np.zeros((1000, 1000))
    for epoch in range(3):
        weights += np.random.default_rng(epoch).normal(size=weights.shape)
        log.info("epoch %d norm %.2f", epoch, np.linalg.norm(weights))
    save(folder, weights)


if __name__ == "__main__":
    main()
