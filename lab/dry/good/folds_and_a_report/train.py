import argparse
import json

import pandas as pd
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--table", required=True)
parser.add_argument("--fold", type=int, choices=range(3), required=True)
parser.add_argument("--output", required=True)
args = parser.parse_args()
table = pd.read_csv(args.table)
held = table.index % 3 == args.fold
x = torch.tensor(table.drop(columns="price").values, dtype=torch.float32)
y = torch.tensor(table[["price"]].values, dtype=torch.float32)
held = torch.tensor(held)
model = nn.Linear(x.shape[1], 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[~held]), y[~held])
    loss.backward()
    return loss


for _ in range(5):
    optimizer.step(closure)
with torch.no_grad():
    error = nn.functional.l1_loss(model(x[held]), y[held]).item()
with open(args.output, "w") as file:
    json.dump({"fold": args.fold, "error": error}, file)
