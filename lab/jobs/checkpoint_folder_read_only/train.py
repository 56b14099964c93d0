import argparse
import json
import os
import random

parser = argparse.ArgumentParser()
parser.add_argument("--output", default="output")
parser.add_argument("--iterations", type=int, default=200)
args = parser.parse_args()


def objective(x):
    return (x[0] - 1) ** 2 + (x[1] + 2) ** 2


random.seed(2)
x, step = [5.0, 5.0], 1.0
for i in range(args.iterations):
    candidate = [v + random.gauss(0, step) for v in x]
    if objective(candidate) < objective(x):
        x = candidate
    step *= 0.99
    if i % 50 == 0:
        print(f"iteration {i}: best {objective(x):.5f}", flush=True)
        with open(os.path.join(args.output, f"state_{i}.json"), "w") as f:
            json.dump({"iteration": i, "x": x}, f)
print("final", x)
