"""Box IoU statistics of the detector's anchors (code from 2019)."""
import numpy as np


def boxes(n, seed):
    rng = np.random.RandomState(seed)
    corner = rng.uniform(0, 400, size=(n, 2))
    return np.hstack([corner, corner + rng.uniform(20, 100, size=(n, 2))])


def iou(a, b):
    lo = np.maximum(a[:, None, :2], b[None, :, :2])
    hi = np.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = np.prod(np.clip(hi - lo, 0, None), axis=2)
    area = lambda x: np.prod(x[:, 2:] - x[:, :2], axis=1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


def assign(anchors, truth, threshold=0.3):
    overlap = iou(anchors, truth)
    best = overlap.argmax(axis=1).astype(np.int)
    best[overlap.max(axis=1) < threshold] = -1
    return best


anchors, truth = boxes(500, 0), boxes(20, 1)
print("anchors", anchors.shape, "truth", truth.shape)
labels = assign(anchors, truth)
print("positives", (labels >= 0).sum())
