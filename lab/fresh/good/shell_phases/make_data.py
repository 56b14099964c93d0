import argparse
import json
import random

parser = argparse.ArgumentParser()
parser.add_argument("path")
parser.add_argument("--count", type=int, default=10)
args = parser.parse_args()

random.seed(0)
with open(args.path, "w") as handle:
    for number in range(args.count):
        record = {"id": number, "vector": [random.gauss(number % 3, 0.5) for _ in range(8)]}
        if number % 7 == 0:
            record["note"] = "füll"
        handle.write(json.dumps(record, ensure_ascii=True) + "\n")
