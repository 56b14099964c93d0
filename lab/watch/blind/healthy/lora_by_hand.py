"""Trains a small base model, freezes it and adapts it to another task with LoRA layers written by hand (B starts at zero)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
DIM, CLASSES = 32, 6


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 8, alpha: float = 16.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


teacher = [torch.randn(DIM, 24), torch.randn(24, CLASSES)]
shift = torch.randn(DIM, DIM) * 0.25


def batch(n, moved):
    x = torch.randn(n, DIM)
    seen = x + x @ shift if moved else x
    return x, (torch.tanh(seen @ teacher[0] * 0.4) @ teacher[1]).argmax(1)


def accuracy(model, moved):
    model.eval()
    with torch.no_grad():
        x, y = batch(2000, moved)
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


model = nn.Sequential(nn.Linear(DIM, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, CLASSES))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(1200):
    x, y = batch(128, moved=False)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"base model: source {accuracy(model, False):.4f} target {accuracy(model, True):.4f}")

for i in (0, 2, 4):
    model[i] = LoRALinear(model[i])
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable parameters: {sum(p.numel() for p in trainable)}")
opt = torch.optim.AdamW(trainable, lr=3e-3)
for step in range(1, 1201):
    x, y = batch(128, moved=True)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 200 == 0:
        print(f"step {step} loss {loss.item():.4f} target accuracy {accuracy(model, True):.4f}")
