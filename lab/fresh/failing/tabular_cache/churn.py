#!/usr/bin/env python
"""Churn from a table: gradient boosting as baseline, then a small network on the same features."""
import argparse
import hashlib
import json
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

NUMERIC = ["tenure", "monthly", "total", "tickets"]
CATEGORICAL = ["plan", "region", "payment"]


class FeatureStore:
    """Keeps the encoded table, so that the sweep does not encode it again each time."""

    def __init__(self, table, folder=None):
        self.table = Path(table)
        self.folder = Path(folder) if folder else self.table.parent / ".features"

    def key(self):
        text = json.dumps([NUMERIC, CATEGORICAL, self.table.stat().st_size])
        return hashlib.sha1(text.encode()).hexdigest()[:12]

    def get(self):
        target = self.folder / f"{self.key()}.joblib"
        if target.exists():
            return joblib.load(target)
        frame = pd.read_csv(self.table)
        x = pd.concat([frame[NUMERIC], pd.get_dummies(frame[CATEGORICAL])], axis=1)
        value = x.to_numpy(np.float32), frame["churned"].to_numpy(np.int64)
        self.folder.mkdir(parents=True, exist_ok=True)
        joblib.dump(value, target)
        return value


def network(features, hidden=(256, 64), dropout=0.2):
    layers, last = [], features
    for width in hidden:
        layers += [nn.Linear(last, width), nn.ReLU(), nn.Dropout(dropout)]
        last = width
    return nn.Sequential(*layers, nn.Linear(last, 1))


def fit(model, x, y, epochs, batch=256):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for part in order.split(batch):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[part])[:, 0], y[part])
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--feature-dir", help="where encoded tables are kept")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    x, y = FeatureStore(args.table, args.feature_dir).get()
    xa, xb, ya, yb = train_test_split(x, y, stratify=y, random_state=0)
    baseline = HistGradientBoostingClassifier().fit(xa, ya)
    scores = {"boosting": roc_auc_score(yb, baseline.predict_proba(xb)[:, 1])}
    scaler = StandardScaler().fit(xa)
    model = network(x.shape[1])
    fit(model, torch.from_numpy(scaler.transform(xa)), torch.from_numpy(ya).float(), args.epochs)
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(torch.from_numpy(scaler.transform(xb)))[:, 0])
    scores["network"] = roc_auc_score(yb, p.numpy())
    (args.out / "scores.json").write_text(json.dumps({k: float(v) for k, v in scores.items()}))


if __name__ == "__main__":
    main()
