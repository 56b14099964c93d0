"""Balance the classes of the review data set before training."""
import argparse
import warnings

import pandas as pd

parser = argparse.ArgumentParser()
parser.add_argument("--input", default="reviews.csv")
parser.add_argument("--per-class", type=int, default=2)
args = parser.parse_args()

warnings.warn("reviews.csv has no schema file, errors in columns will be found late")
frame = pd.read_csv(args.input)
print(f"read {len(frame)} rows from {args.input}")
print(frame.head(2).to_string())
frame["text"] = frame["text"].str.lower().str.strip()
balanced = frame.groupby(frame["label"]).head(args.per_class)
balanced.to_csv("balanced.csv", index=False)
print("kept", len(balanced))
