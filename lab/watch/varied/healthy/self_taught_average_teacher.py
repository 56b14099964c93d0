"""A student follows the moving average of itself over two noisy views; the teacher gets no gradient."""

import copy

import torch
from torch import nn

torch.manual_seed(14)
torch.set_num_threads(1)
mixing = torch.randn(8, 30)
student = nn.Sequential(nn.Linear(30, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
predictor = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
teacher = copy.deepcopy(student)
teacher.requires_grad_(False)
optimizer = torch.optim.SGD([*student.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9)


def pair(count):
    source = torch.randn(count, 8)
    return source, source @ mixing + torch.randn(count, 30), source @ mixing + torch.randn(count, 30)


for step in range(1, 401):
    _, one, other = pair(64)
    loss = 2 - 2 * nn.functional.cosine_similarity(predictor(student(one)), teacher(other)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
            old.mul_(0.98).add_(new, alpha=0.02)
    if step % 100 == 0:
        student.eval()
        with torch.no_grad():
            source, view, _ = pair(600)
            features = torch.cat([student(view), torch.ones(600, 1)], 1)
            fit = torch.linalg.lstsq(features[:400], source[:400]).solution
            left = ((features[400:] @ fit - source[400:]) ** 2).mean()
        student.train()
        print(f"step {step} loss {loss.item():.3f} probe error {left:.4f}")
