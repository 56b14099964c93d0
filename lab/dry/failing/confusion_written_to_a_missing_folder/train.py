import argparse

import numpy as np
import torch
from torch import nn


def confusion(model, n=400):
    table = np.zeros((3, 3), dtype=int)
    with torch.no_grad():
        x = torch.randn(n, 5)
        for truth, guess in zip(x.argmax(1) % 3, model(x).argmax(1)):
            table[truth, guess] += 1
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--report", default="reports/confusion.csv")
    options = parser.parse_args()
    model = nn.Linear(5, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(options.epochs):
        for _ in range(100):
            x = torch.randn(64, 5)
            loss = nn.functional.cross_entropy(model(x), x.argmax(1) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    np.savetxt(options.report, confusion(model), fmt="%d", delimiter=",")


if __name__ == "__main__":
    main()
