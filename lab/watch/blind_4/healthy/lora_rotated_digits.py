"""Low-rank adapters move a frozen digit classifier to rotated scans."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
digits = load_digits()
upright = torch.tensor(digits.images / 16.0, dtype=torch.float32)
turned = torch.tensor(np.rot90(digits.images, axes=(1, 2)).copy() / 16.0, dtype=torch.float32)
target = torch.tensor(digits.target)
split = torch.randperm(len(target))
train, test = split[:1300], split[1300:]


class LowRank(nn.Module):
    def __init__(self, base, rank=8, alpha=16):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T) @ self.b.T


def fit(model, images, epochs, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    print("trainable parameters:", sum(p.numel() for p in params))
    optimizer = torch.optim.AdamW(params, lr=lr)
    loader = DataLoader(TensorDataset(images[train], target[train]), batch_size=32, shuffle=True)
    for epoch in range(epochs):
        losses = []
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f}")


@torch.no_grad()
def accuracy(model, images):
    return (model(images[test]).argmax(1) == target[test]).float().mean().item()


net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
fit(net, upright, epochs=4, lr=3e-3)
print(f"upright {accuracy(net, upright):.4f} turned {accuracy(net, turned):.4f}")
for index in (1, 3, 5):
    net[index] = LowRank(net[index])
fit(net, turned, epochs=5, lr=2e-3)
print(f"adapted accuracy {accuracy(net, turned):.4f}")
