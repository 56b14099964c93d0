import argparse
import os

import numpy as np
import pandas as pd
import torch
from torch import nn

import compat

NUMBERS = ["mean_z", "std_z", "speed", "temperature", "age"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--csv", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=80)
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    frame = pd.read_csv(args.csv)
    encoder = compat.encoder().fit(frame[["road"]])
    x = np.concatenate([frame[NUMBERS].to_numpy(), encoder.transform(frame[["road"]])], 1)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(frame["iri"].to_numpy(np.float32))
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    schedule = compat.plateau(optimizer)
    table = pd.DataFrame(columns=["epoch", "rmse"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for epoch in range(args.epochs):
        with compat.autocast(device, enabled=device == "cuda"):
            loss = nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(loss.item())
        error = compat.rmse(y.numpy(), model(x)[:, 0].detach().numpy())
        assert isinstance(error, (float, *compat.FLOATS))
        table = compat.append(table, {"epoch": epoch, "rmse": float(error)})
    torch.save({"model": model, "encoder": encoder}, os.path.join(args.out, "all.pt"))
    back = compat.load(os.path.join(args.out, "all.pt"))
    print(sum(p.numel() for p in back["model"].parameters()), compat.trapezoid(table["rmse"].to_numpy()))
    print(compat.elementwise(table, lambda v: f"{v:.3f}").tail())


if __name__ == "__main__":
    main()
