"""Pretrain, then average weights in a second program."""
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

OUT = Path("runs")


def pretrain():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = torch.randn(512, 8)
    y = x.sum(1, keepdim=True).sin()
    for epoch in range(40):
        for part in torch.randperm(512).split(64):
            loss = nn.functional.mse_loss(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    OUT.mkdir(exist_ok=True)
    torch.save({"model": model.state_dict(), "loss": loss.item()}, OUT / "pretrained.pt")
    return OUT / "pretrained.pt"


if __name__ == "__main__":
    checkpoint = pretrain()
    print("pretrained:", checkpoint)
    subprocess.run([sys.executable, "average.py", "--checkpoint", str(checkpoint), "--swa-lr", "0.01"], check=True)
