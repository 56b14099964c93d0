import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--count", type=int, default=100)
args = parser.parse_args()
rng = np.random.default_rng(0)
x = rng.standard_normal((args.count, 7)).astype(np.float32)
np.savez(args.out, x=x, y=(x**2).sum(1))
