"""Anchor statistics from COCO-style annotations, then a k-means over box sizes."""
import json
import sys
import time

import numpy as np


class Coco:
    def __init__(self, path):
        print("loading annotations into memory...")
        start = time.time()
        with open(path) as f:
            self.dataset = json.load(f)
        print(f"Done (t={time.time() - start:.2f}s)")

    def box_sizes(self):
        return np.array([a["bbox"][2:] for a in self.dataset["annotations"]], dtype=float)


def kmeans(points, k, rounds=10):
    centres = points[np.random.default_rng(0).choice(len(points), k, replace=False)]
    for _ in range(rounds):
        nearest = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        centres = np.array([points[nearest == i].mean(0) for i in range(k)])
    return centres


def main():
    coco = Coco(sys.argv[1])
    print(kmeans(coco.box_sizes(), k=2))


if __name__ == "__main__":
    main()
