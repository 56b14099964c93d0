import copy
import math

import torch
from torch import nn


def find_rate(model, optimizer, batch, low=1e-5, high=10.0, steps=200):
    saved = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    rates, losses, best = [], [], math.inf
    rate = low
    for _ in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        if not torch.isfinite(loss) or loss.item() > 4 * best:
            break
        best = min(best, loss.item())
        rates.append(rate)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate *= (high / low) ** (1 / steps)
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    if len(losses) < 10:
        raise RuntimeError("the range test ended too early")
    steepest = min(range(1, len(losses)), key=lambda k: losses[k] - losses[k - 1])
    return rates[steepest]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def batch():
        x = torch.randn(64, 10)
        return x, x[:, :2].prod(1, keepdim=True)

    rate = min(find_rate(model, optimizer, batch), 0.1)
    for group in optimizer.param_groups:
        group["lr"] = rate
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=300)
    for step in range(300):
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print("rate", rate, "loss", loss.item())


if __name__ == "__main__":
    main()
