import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

RENAMES = {"Units Sold": "units", "Store Nr": "store"}


def read(path):
    frame = pd.read_csv(path, sep=None, engine="python", decimal=",", parse_dates=["Date"])
    frame = frame.rename(columns=RENAMES).rename(columns=str.lower)
    if "promo" not in frame:
        frame["promo"] = 0
    frame["promo"] = frame["promo"].fillna(0).astype(int)
    frame["weekday"] = frame["date"].dt.dayofweek
    frame["source"] = Path(path).stem
    return frame


def tidy(frame):
    frame = frame.dropna(subset=["units"]).copy()
    frame["log_units"] = np.log1p(frame.pop("units"))
    frame = frame.join(pd.get_dummies(frame["store"], prefix="store", dtype=float))
    return frame.drop(columns=["store", "unused"], errors="ignore")


def inputs(frame):
    return ["price", "promo", "weekday", *(name for name in frame.columns if name.startswith("store_"))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", default=["data/first.csv"])
    args = parser.parse_args()
    frame = tidy(pd.concat([read(path) for path in args.files], ignore_index=True))
    columns = inputs(frame)
    x = torch.tensor(frame[columns].to_numpy(dtype=np.float32))
    y = torch.tensor(frame["log_units"].to_numpy(dtype=np.float32))
    spread = x.std(0)
    x = (x - x.mean(0)) / torch.where(spread > 0, spread, 1)
    model = nn.Linear(len(columns), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(50):
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    frame["fitted"] = model(x).squeeze(-1).detach().numpy()
    table = frame.assign(error=lambda f: (f.fitted - f.log_units).abs()).groupby("source")["error"].mean()
    out = Path("out")
    out.mkdir(exist_ok=True)
    table.to_csv(out / "errors.csv")
    again = pd.read_csv(out / "errors.csv", index_col="source")
    for row in again.reset_index().itertuples():
        print(row.source, f"{row.error:.3f}")
    try:
        frame.to_excel(out / "all.xlsx")
    except ImportError:
        frame.to_csv(out / "all.csv")


if __name__ == "__main__":
    main()
