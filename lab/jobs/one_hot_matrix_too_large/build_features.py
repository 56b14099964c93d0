"""Turn the interaction log into a dense user x item matrix for the autoencoder."""
import argparse
import logging

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("features")


def load_interactions(n_users, n_items, rng):
    users = rng.integers(0, n_users, size=500_000)
    items = rng.integers(0, n_items, size=500_000)
    return users, items


def to_dense(users, items, n_users, n_items):
    matrix = np.zeros((n_users, n_items), dtype=np.float64)
    matrix[users, items] = 1.0
    return matrix


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, required=True)
    parser.add_argument("--items", type=int, required=True)
    args = parser.parse_args()

    rng = np.random.default_rng(7)
    users, items = load_interactions(args.users, args.items, rng)
    log.info("read %d interactions of %d users", len(users), args.users)
    dense = to_dense(users, items, args.users, args.items)
    log.info("feature matrix %s", dense.shape)
    np.save("features.npy", dense)


if __name__ == "__main__":
    main()
