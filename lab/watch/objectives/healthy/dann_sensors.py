"""Adapts a classifier to other sensors by reversing the gradient of a domain classifier."""

import torch
from torch import nn

torch.manual_seed(14)
torch.set_num_threads(1)
CLASSES = 4
centres = 1.5 * torch.randn(CLASSES, 10)
drift = torch.zeros(10)
drift[:4] = 2.0


def sample(count: int, moved: bool) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.randint(CLASSES, (count,))
    return centres[kind] + 0.9 * torch.randn(count, 10) + moved * drift, kind


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


class Adapted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.kinds = nn.Linear(32, CLASSES)
        self.domains = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x: torch.Tensor, strength: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(x)
        return self.kinds(features), self.domains(Reverse.apply(features, strength)).squeeze(1)


source, source_kinds = sample(1200, False)
moved, _ = sample(1200, True)
test, truth = sample(600, True)
model = Adapted()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
classify, tell_apart = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()
for epoch in range(14):
    model.train()
    for rows, others in zip(torch.randperm(1200).split(60), torch.randperm(1200).split(60)):
        strength = min(1.0, epoch / 6)
        kinds, here = model(source[rows], strength)
        _, there = model(moved[others], strength)
        domains = torch.cat([here, there])
        origin = torch.cat([torch.zeros(60), torch.ones(60)])
        loss = classify(kinds, source_kinds[rows]) + 0.5 * tell_apart(domains, origin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(test)[0].argmax(1) == truth).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy on the other sensors {right:.4f}")
