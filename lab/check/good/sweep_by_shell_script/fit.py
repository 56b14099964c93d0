import argparse
import json

import numpy as np
from sklearn.linear_model import Ridge

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    x = rng.normal(size=(200, 5))
    y = x @ np.arange(5) + rng.normal(size=200)
    model = Ridge(alpha=args.alpha).fit(x[:150], y[:150])
    result = {"seed": args.seed, "alpha": args.alpha, "r2": model.score(x[150:], y[150:])}
    with open(args.out, "w") as handle:
        json.dump(result, handle)
