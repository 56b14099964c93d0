"""Forest cover type from cartographic variables: a small residual MLP."""
import argparse
import csv
import logging
import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reporting import Reporter

log = logging.getLogger("forest")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", default="./data")
    parser.add_argument("--report-root", default="./reports")
    parser.add_argument("--ckpt-dir", default="/scratch/forest")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read(path):
    rows, labels = [], []
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            labels.append(int(row.pop("cover")) - 1)
            rows.append([float(v) for v in row.values()])
    return torch.tensor(rows), torch.tensor(labels)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(),
                                  nn.Linear(width, width))

    def forward(self, x):
        return x + self.body(x)


def build(features, classes, width=128, depth=4):
    return nn.Sequential(nn.Linear(features, width), *[Block(width) for _ in range(depth)],
                         nn.Linear(width, classes))


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total, right, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
            right += (logits.argmax(1) == y).sum().item()
            seen += len(x)
    return total / seen, right / seen


def main():
    args = parse()
    logging.basicConfig(level=logging.INFO)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    os.makedirs(args.ckpt_dir, exist_ok=True)
    os.makedirs(args.report_root, exist_ok=True)

    train = TensorDataset(*read(os.path.join(args.data_root, "train.csv")))
    test_x, test_y = read(os.path.join(args.data_root, "test.csv"))
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    model = build(test_x.shape[1], 7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    reporter = Reporter(args.report_root, run_name="mlp-%d" % args.seed)
    for epoch in range(args.epochs):
        loss, accuracy = run_epoch(model, loader, optimizer)
        reporter.add(epoch=epoch, loss=loss, accuracy=accuracy)
        torch.save(model.state_dict(), os.path.join(args.ckpt_dir, "last.pt"))
        log.info("epoch %d loss %.4f accuracy %.3f", epoch, loss, accuracy)
    loss, accuracy = run_epoch(model, DataLoader(TensorDataset(test_x, test_y), batch_size=4096))
    reporter.close(test_loss=loss, test_accuracy=accuracy)


if __name__ == "__main__":
    main()
