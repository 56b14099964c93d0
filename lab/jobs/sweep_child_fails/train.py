import argparse
import json

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--config")
args = parser.parse_args()
with open(args.config) as f:
    config = json.load(f)


def fit(lr, config):
    rng = np.random.default_rng(config["seed"])
    x = rng.normal(size=(config["samples"], 3))
    w = np.zeros(3)
    for epoch in range(config["epochs"]):
        w -= lr * x.T @ (x @ w - x.sum(1)) / len(x)
        if epoch >= config["epochs"] // 2:  # the penalty comes in when the weights have settled
            w -= lr * config["regularisation"]["l2"] * w
        print(f"lr {lr} epoch {epoch} |w| {np.abs(w).sum():.3f}", flush=True)
    return w


weights = fit(args.lr, config)
print(f"lr {args.lr}: weights {weights.round(3)}")
