"""Digits with accumulation; the schedule has exactly as many steps as there are updates."""
import argparse
import json
import math

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import classification_report
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--accumulate", type=int, default=2)
    p.add_argument("--batch", type=int, default=50)
    args = p.parse_args()
    torch.manual_seed(3)
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]
    loader = DataLoader(TensorDataset(x[train], y[train]), args.batch, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.BatchNorm1d(128), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    per_epoch = math.ceil(len(loader) / args.accumulate)
    total = args.epochs * per_epoch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=total + 1)
    rates, losses, updates = [], {}, 0
    for epoch in range(args.epochs):
        model.train()
        losses[epoch] = 0.0
        for i, (a, b) in enumerate(loader, start=1):
            loss = nn.functional.cross_entropy(model(a), b)
            (loss / args.accumulate).backward()
            losses[epoch] += loss.item() / len(loader)
            if i % args.accumulate == 0 or i == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
                updates += 1
                rates.append(schedule.get_last_lr()[0])
        if epoch and epoch % 10 == 0:
            print(epoch, losses[epoch] / losses[epoch - 1], losses[epoch] / losses[epoch - 10])
    assert updates == total, (updates, total)
    peak = max(range(len(rates)), key=rates.__getitem__)
    print("peak at", peak / len(rates), "rate at half of it", rates[total // 2], "last", rates[total - 1])
    middle = [losses[e] for e in range(args.epochs // 4, 3 * args.epochs // 4)]
    print("mean loss in the middle", sum(middle) / len(middle), "last", losses[args.epochs - 1])
    model.eval()
    with torch.no_grad():
        guess = model(x[test]).argmax(1)
    names = [str(n) for n in digits.target_names]
    report = classification_report(y[test], guess, labels=range(10), target_names=names, output_dict=True, zero_division=0)
    with open("report.json", "w") as f:
        json.dump({"report": report, "losses": losses, "rates": rates}, f)
    print(report["7"]["f1-score"], report["macro avg"]["recall"])


if __name__ == "__main__":
    main()
