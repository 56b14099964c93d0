import numpy as np


def average_precision(scores, relevant):
    """Mean of the precision at each relevant item."""
    order = np.argsort(-scores)
    hits = relevant[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / max(hits.sum(), 1))
