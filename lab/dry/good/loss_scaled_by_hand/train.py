import argparse
import math

import torch
from torch import nn


def device_of(name):
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def samples(number):
    for index in range(number):
        if index % 17 == 5:
            raise ValueError(f"sample {index} is damaged")
        yield torch.randn(6)


def batches(size):
    rows = []
    for start in range(0, 400, 10):
        try:
            rows.extend(samples(10 if start % 50 else 4))
        except ValueError as error:
            print("skipped:", error)
        while len(rows) >= size:
            yield torch.stack(rows[:size])
            rows = rows[size:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    device = device_of(args.device)
    model = nn.Sequential(nn.Linear(6, 32), nn.ELU(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    size = 64
    for epoch in range(3):
        try:
            for number, batch in enumerate(batches(size)):
                x = batch.to(device)
                y = (x.prod(dim=1, keepdim=True)).tanh()
                loss = nn.functional.mse_loss(model(x), y)
                if not math.isfinite(loss.item()):
                    print(f"batch {number} skipped, loss {loss.item()}")
                    continue
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            size = max(1, size // 2)
            print("out of memory, batches of", size)
        print(f"epoch {epoch} done")


if __name__ == "__main__":
    main()
