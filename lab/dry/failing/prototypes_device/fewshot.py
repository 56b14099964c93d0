"""Prototypical networks on generated shapes; all classes are told apart at the end."""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F


def draw(kind, count, generator):
    """Noisy pictures of one class."""
    g = torch.Generator().manual_seed(kind)
    base = torch.randn(1, 1, 28, 28, generator=g)
    return base + 0.7 * torch.randn(count, 1, 28, 28, generator=generator)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        def block(a):
            return nn.Sequential(nn.Conv2d(a, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(block(1), block(width), block(width), nn.Flatten())

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


class Memory:
    """Mean embedding of every class seen."""

    def __init__(self, classes, momentum=0.9):
        self.means = [None] * classes
        self.momentum = momentum

    def update(self, kind, value):
        value = value.detach().cpu()
        old = self.means[kind]
        self.means[kind] = value if old is None else self.momentum * old + (1 - self.momentum) * value

    def nearest(self, embedded):
        known = [i for i, m in enumerate(self.means) if m is not None]
        table = torch.stack([self.means[i] for i in known])
        best = (embedded @ table.T).argmax(1)
        return torch.tensor(known)[best.cpu()]


def episode(encoder, memory, kinds, device, generator, shots=5, queries=10):
    prototypes, query, target = [], [], []
    for i, kind in enumerate(kinds):
        images = draw(kind, shots + queries, generator).to(device)
        e = encoder(images)
        prototypes.append(e[:shots].mean(0))
        memory.update(kind, prototypes[-1])
        query.append(e[shots:])
        target += [i] * queries
    logits = -torch.cdist(torch.cat(query), torch.stack(prototypes)).square()
    return F.cross_entropy(logits, torch.tensor(target, device=device))


@torch.no_grad()
def evaluate(encoder, memory, classes, device, generator):
    encoder.eval()
    right = 0
    for kind in range(classes):
        right += (memory.nearest(encoder(draw(kind, 8, generator).to(device))) == kind).sum().item()
    return right / (8 * classes)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--classes", type=int, default=20)
    p.add_argument("--ways", type=int, default=5)
    p.add_argument("--episodes", type=int, default=100)
    p.add_argument("--every", type=int, default=50)
    args = p.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(1)
    encoder, memory = Encoder().to(device), Memory(args.classes)
    optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
    for n in range(1, args.episodes + 1):
        encoder.train()
        loss = episode(encoder, memory, random.sample(range(args.classes), args.ways), device, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % args.every == 0:
            print(n, loss.item(), flush=True)
    torch.save(encoder.state_dict(), "encoder.pt")
    print("accuracy", evaluate(encoder, memory, args.classes, device, generator))


if __name__ == "__main__":
    main()
