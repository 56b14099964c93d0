from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from churn import tables


def as_tensors(frame, mean=None, spread=None):
    values = frame[tables.FEATURES].to_numpy(dtype=np.float32)
    if mean is None:
        mean, spread = values.mean(0), values.std(0) + 1e-6
    features = torch.from_numpy((values - mean) / spread)
    labels = torch.tensor(frame["left"].to_numpy(), dtype=torch.float32)
    return features, labels, mean, spread


def fit(features, labels, epochs, device):
    model = nn.Sequential(nn.Linear(features.shape[1], 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(TensorDataset(features, labels), batch_size=256, shuffle=True)
    for _ in range(epochs):
        for x, y in loader:
            logits = model(x.to(device)).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "churn")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    train, held = tables.split(tables.customers(args.rows))
    features, labels, mean, spread = as_tensors(train)
    model = fit(features, labels, args.epochs, device)
    torch.save(model.state_dict(), args.out / "churn.pt")

    features, _, _, _ = as_tensors(held, mean, spread)
    with torch.no_grad():
        scores = torch.sigmoid(model(features.to(device))).squeeze(1).cpu().numpy()
    tables.deliver(tables.by_region(held, scores), args.out)


if __name__ == "__main__":
    main()
