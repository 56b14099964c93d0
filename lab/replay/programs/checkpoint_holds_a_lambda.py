"""The checkpoint is given the whole configuration, and a function stands in it."""

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    config = {"width": 32, "lr": 1e-3, "schedule": lambda step: min(1.0, step / 50)}
    model = nn.Sequential(nn.Linear(10, config["width"]), nn.Tanh(), nn.Linear(config["width"], 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, config["schedule"])
    for step in range(1, 501):
        x = torch.randn(64, 10)
        loss = (model(x) - x.norm(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 250 == 0:
            print(f"step {step} loss {loss.item():.4f}")
            torch.save({"model": model.state_dict(), "config": config}, "checkpoint.pt")


main()
