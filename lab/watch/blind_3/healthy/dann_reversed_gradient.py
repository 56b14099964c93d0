"""Domain adaptation: a reversed gradient makes features that a domain classifier cannot tell apart; its loss stays near log 2."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(107)
DIM, CLASSES, STEPS = 20, 4, 1800
centers = 1.6 * torch.randn(CLASSES, DIM)
nuisance = torch.randn(6, DIM)
shift = 3.0 * torch.randn(DIM) / DIM**0.5


def domain(n, target):
    y = torch.randint(CLASSES, (n,))
    x = centers[y] + torch.randn(n, DIM)
    spurious = F.one_hot(y, CLASSES).float() @ nuisance[:CLASSES] if not target else torch.randn(n, 6) @ nuisance
    return x + 0.9 * spurious + (shift if target else 0.0), y


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.label = nn.Linear(32, CLASSES)
        self.domain = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, strength=0.0):
        h = self.features(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


source, source_y = domain(3000, target=False)
target, _ = domain(3000, target=True)
test, test_y = domain(1500, target=True)
model = Adapted()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
where = torch.cat([torch.zeros(64), torch.ones(64)])
for step in range(1, STEPS + 1):
    strength = 0.5 * (2 / (1 + math.exp(-8 * step / STEPS)) - 1)
    a, b = torch.randint(3000, (2, 64))
    logits, origin = model(torch.cat([source[a], target[b]]), strength)
    class_loss = F.cross_entropy(logits[:64], source_y[a])
    domain_loss = F.binary_cross_entropy_with_logits(origin, where)
    loss = class_loss + domain_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 300 == 0:
        model.eval()
        with torch.no_grad():
            accuracy = (model(test)[0].argmax(1) == test_y).float().mean().item()
        model.train()
        print(f"step {step} class {class_loss.item():.4f} domain {domain_loss.item():.4f} target accuracy {accuracy:.4f}")
