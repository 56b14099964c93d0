"""Mean teacher: 30 labelled points, the rest by consistency with an average of the weights; the loss rises when its part is ramped up."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(23)
N, LABELLED, STEPS = 1500, 30, 1500


def rings(n):
    y = torch.randint(0, 3, (n,))
    radius = 1.0 + y.float() + 0.13 * torch.randn(n)
    angle = torch.rand(n) * 6.2832
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), y


def net():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


@torch.no_grad()
def update_teacher(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)


def ramp(step):
    return min(1.0, step / 300)


x, y = rings(N)
labelled = torch.randperm(N)[:LABELLED]
x_test, y_test = rings(1000)
student = net()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(1, STEPS + 1):
    idx = torch.randint(0, N, (128,))
    weak = x[idx] + 0.05 * torch.randn(128, 2)
    strong = x[idx] + 0.2 * torch.randn(128, 2)
    supervised = F.cross_entropy(student(x[labelled] + 0.05 * torch.randn(LABELLED, 2)), y[labelled])
    with torch.no_grad():
        probs = teacher(weak).softmax(-1)
        confidence, pseudo = probs.max(-1)
        mask = (confidence >= 0.8).float()
    consistency = (F.cross_entropy(student(strong), pseudo, reduction="none") * mask).mean()
    loss = supervised + 2.0 * ramp(step) * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(teacher, student, decay=0.98)
    if step % 250 == 0:
        with torch.no_grad():
            acc = (teacher(x_test).argmax(-1) == y_test).float().mean().item()
        print(f"[{step}] sup {supervised.item():.4f} cons {consistency.item():.4f} used {mask.mean().item():.2f} teacher_acc {acc:.4f}")
