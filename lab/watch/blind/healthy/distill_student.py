"""Trains a teacher on many labels, then distils it into a small student that sees few labels and many soft targets."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(29)
TEMPERATURE, ALPHA = 3.0, 0.1
w = torch.randn(20, 12)
v = torch.randn(12, 8)


def draw(n):
    x = torch.randn(n, 20)
    return x, (torch.sin(x @ w * 0.5) @ v).argmax(1)


def mlp(width):
    return nn.Sequential(
        nn.Linear(20, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
    )


def accuracy(net, data):
    net.eval()
    with torch.no_grad():
        return (net(data[0]).argmax(1) == data[1]).float().mean().item()


def distillation_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(
        F.log_softmax(student_logits / TEMPERATURE, dim=1),
        F.softmax(teacher_logits / TEMPERATURE, dim=1),
        reduction="batchmean",
    )
    return ALPHA * F.cross_entropy(student_logits, labels) + (1 - ALPHA) * TEMPERATURE**2 * soft


test = draw(2000)
teacher, student = mlp(192), mlp(64)
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
teacher.train()
for step in range(1200):
    x, y = draw(128)
    loss = F.cross_entropy(teacher(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"teacher accuracy {accuracy(teacher, test):.4f}")

for p in teacher.parameters():
    p.requires_grad_(False)
teacher.eval()
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(1, 1201):
    student.train()
    x, y = draw(128)
    loss = distillation_loss(student(x), teacher(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 200 == 0:
        print(f"step {step} distill loss {loss.item():.4f} student accuracy {accuracy(student, test):.4f}")
