"""Benign or malignant: a small network on scikit-learn's breast cancer data. Val accuracy reaches about 0.96."""

import argparse

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.set_num_threads(1)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def load(seed):
    inputs, labels = load_breast_cancer(return_X_y=True)
    train_x, val_x, train_y, val_y = train_test_split(
        inputs, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    scaler = StandardScaler().fit(train_x)
    train_x = scaler.transform(train_x)
    val_x = scaler.transform(val_x)
    return [torch.tensor(part, dtype=torch.float32) for part in (train_x, train_y, val_x, val_y)]


class Diagnosis(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(30, 32)
        self.hidden2 = nn.Linear(32, 16)
        self.output = nn.Linear(16, 1)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = self.dropout(torch.relu(self.hidden2(x)))
        return self.output(x).squeeze(1)


def main():
    args = parse()
    torch.manual_seed(args.seed)
    train_x, train_y, val_x, val_y = load(args.seed)
    model = Diagnosis()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(train_x))
        for start in range(0, len(order), args.batch_size):
            batch = order[start : start + args.batch_size]
            loss = criterion(model(train_x[batch]), train_y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(val_x)
            val_loss = criterion(logits, val_y).item()
            accuracy = ((logits > 0).float() == val_y).float().mean().item()
        print(f"[{epoch + 1:02d}] loss={loss.item():.4f} val loss={val_loss:.4f} val accuracy={accuracy:.4f}")


if __name__ == "__main__":
    main()
