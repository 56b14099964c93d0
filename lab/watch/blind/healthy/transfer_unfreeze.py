"""Transfer: the pretrained backbone is frozen on purpose for some epochs and fine-tuned afterwards at a lower rate."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(61)
mix = torch.randn(16, 48) / 4
turned = mix + 0.35 * torch.randn(16, 48) / 4
rule = torch.randn(16, 10)


def task(n, matrix, classes):
    hidden = torch.randn(n, 16)
    y = ((hidden.abs() - 0.8) @ rule).argmax(1) % classes
    return hidden @ matrix + 0.05 * torch.randn(n, 48), y


def run_epoch(model, optimizer, data, batch=64):
    x, y = data
    for rows in torch.randperm(len(x)).split(batch):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def accuracy(model, data):
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


backbone = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
model = nn.Sequential(backbone, nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
source = task(4000, mix, 10)
for epoch in range(10):
    loss = run_epoch(model, optimizer, source)
print(f"pretrained: loss {loss:.4f}")

model[1] = nn.Linear(64, 5)
train, val = task(1500, turned, 5), task(1000, turned, 5)
for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model[1].parameters(), lr=3e-3)
for epoch in range(15):
    if epoch == 5:
        for p in backbone.parameters():
            p.requires_grad = True
        optimizer.add_param_group({"params": list(backbone.parameters()), "lr": 1e-3})
    loss = run_epoch(model, optimizer, train)
    print(f"epoch {epoch} loss {loss:.4f} val accuracy {accuracy(model, val):.4f}")
