import argparse

import numpy as np
import pandas as pd

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, required=True)
parser.add_argument("--output", required=True)
args = parser.parse_args()
random = np.random.default_rng(0)
table = pd.DataFrame(random.normal(size=(args.rows, 4)), columns=list("abcd"))
table["price"] = 3 * table["a"] - table["c"] + random.normal(scale=0.1, size=args.rows)
table.to_csv(args.output, index=False)
print(table.describe())
