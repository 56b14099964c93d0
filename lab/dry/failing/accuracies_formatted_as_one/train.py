import argparse

import torch
from torch import nn


def run_epoch(model, optimizer, data):
    right = 0
    for x, y in data:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum().item()
    return right / (len(data) * 32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    torch.manual_seed(0)
    data = [(torch.randn(32, 20), torch.randint(4, (32,))) for _ in range(100)]
    model = nn.Linear(20, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    accuracies = []
    for epoch in range(options.epochs):
        accuracies.append(run_epoch(model, optimizer, data))
    torch.save(model.state_dict(), "model.pt")
    print(f"final accuracy {accuracies:.3f}")


if __name__ == "__main__":
    main()
