"""Learns representations of tones without labels (BYOL), judged by the nearest mean of each kind."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(21)
torch.set_num_threads(1)
KINDS = 5
time = torch.linspace(0, 1, 48)


def tones(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.randint(KINDS, (count,))
    base = 9.0 + 5.0 * kind[:, None]
    wave = torch.sin(base * time + 2.0 * torch.randn(count, 1)) + 0.5 * torch.sin(2 * base * time)
    return wave + 0.1 * torch.randn(count, 48), kind


def view(wave: torch.Tensor) -> torch.Tensor:
    louder = wave * (0.7 + 0.6 * torch.rand(len(wave), 1))
    shifted = torch.stack([row.roll(int(by)) for row, by in zip(louder, torch.randint(-8, 9, (len(wave),)))])
    return shifted + 0.15 * torch.randn_like(wave)


def tower() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(48, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 32),
    )


online = tower()
predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=2e-3)


def distance(guess: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    return 2 - 2 * F.cosine_similarity(guess, goal, dim=-1).mean()


def probe(waves: torch.Tensor, kinds: torch.Tensor, test: torch.Tensor, truth: torch.Tensor) -> float:
    online.eval()
    with torch.no_grad():
        seen, other = online(waves), online(test)
    online.train()
    middle = torch.stack([F.normalize(seen, dim=1)[kinds == kind].mean(0) for kind in range(KINDS)])
    return ((other @ F.normalize(middle, dim=1).T).argmax(1) == truth).float().mean().item()


waves, kinds = tones(1024)
test, truth = tones(512)
for epoch in range(12):
    for rows in torch.randperm(len(waves)).split(128):
        first, second = view(waves[rows]), view(waves[rows])
        with torch.no_grad():
            goal_first, goal_second = target(first), target(second)
        loss = distance(predictor(online(first)), goal_second)
        loss = loss + distance(predictor(online(second)), goal_first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        blend = 1 - 0.03 * (math.cos(math.pi * epoch / 12) + 1) / 2
        with torch.no_grad():
            for old, new in zip(target.parameters(), online.parameters()):
                old.mul_(blend).add_(new, alpha=1 - blend)
    print(f"epoch {epoch} loss {loss.item():.4f} probe {probe(waves, kinds, test, truth):.4f}")
