"""Two towers that match queries with items; recall over all of them at the end."""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F


class Tower(nn.Module):
    def __init__(self, inputs, width=128):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


class TwoTowers(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.query, self.item = Tower(inputs), Tower(inputs)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, q, i):
        return self.scale.exp() * self.query(q) @ self.item(i).T


def pairs(count, inputs=32, seed=0):
    g = torch.Generator().manual_seed(seed)
    items = torch.randn(count, inputs, generator=g)
    mix = torch.randn(inputs, inputs, generator=g) / inputs ** 0.5
    return items @ mix + 0.1 * torch.randn(count, inputs, generator=g), items


def train_epoch(model, queries, items, optimizer, batch, device):
    total = 0.0
    order = torch.randperm(len(items))
    for part in order.split(batch):
        logits = model(queries[part].to(device), items[part].to(device))
        target = torch.arange(len(part), device=device)
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(part)
    return total / len(items)


@torch.no_grad()
def recall(model, queries, items, device, ks=(1, 10)):
    model.eval()
    q = torch.cat([model.query(part.to(device)) for part in queries.split(4096)])
    i = torch.cat([model.item(part.to(device)) for part in items.split(4096)])
    probability = (model.scale.exp() * (q @ i.T)).softmax(dim=1)
    top = probability.topk(max(ks), dim=1).indices
    truth = torch.arange(len(q), device=device)[:, None]
    return {k: (top[:, :k] == truth).any(1).float().mean().item() for k in ks}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--items", type=int, default=5000)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--out", default="match")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    queries, items = pairs(args.items)
    model = TwoTowers(items.shape[1]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(args.epochs):
        model.train()
        print(epoch, train_epoch(model, queries, items, optimizer, args.batch, device), flush=True)
        torch.save(model.state_dict(), os.path.join(args.out, "towers.pt"))
    print(recall(model, queries, items, device))


if __name__ == "__main__":
    main()
