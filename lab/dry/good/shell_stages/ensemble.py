import argparse

import numpy as np
import torch

from train import network

parser = argparse.ArgumentParser()
parser.add_argument("models", nargs="+")
parser.add_argument("--data", required=True)
args = parser.parse_args()
with np.load(args.data) as data:
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
predictions = []
for path in args.models:
    model = network()
    model.load_state_dict(torch.load(path)["model"])
    predictions.append(model(x).squeeze(1).detach())
print(len(predictions), "models, error", (torch.stack(predictions).mean(0) - y).pow(2).mean().item())
