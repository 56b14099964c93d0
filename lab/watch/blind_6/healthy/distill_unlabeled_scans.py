"""Distills a teacher of handwritten digits into a small student, on scans without labels."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

SEED = 53
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.data, dtype=torch.float32)[order]
labels = torch.tensor(digits.target)[order]
mean, std = images[:700].mean(0), images[:700].std(0) + 1.0


def standardized(batch):
    return (batch - mean) / std


def batches(count, size=25):
    return torch.randperm(count).split(size)


teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(12):
    teacher.train()
    for index in batches(700):
        loss = F.cross_entropy(teacher(standardized(images[:700][index])), labels[:700][index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
teacher.eval().requires_grad_(False)
print(f"teacher accuracy: {(teacher(standardized(images[1300:])).argmax(1) == labels[1300:]).float().mean():.4f}")

student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
unlabeled = images[:1300]
for epoch in range(25):
    student.train()
    total = 0.0
    for index in batches(len(unlabeled)):
        scans = unlabeled[index]
        wanted = F.softmax(teacher(standardized(scans)) / 2, dim=1)
        found = F.log_softmax(student(scans / 16) / 2, dim=1)
        loss = 4 * F.kl_div(found, wanted, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(scans)
    if epoch % 5 == 4:
        student.eval()
        with torch.no_grad():
            accuracy = (student(images[1300:] / 16).argmax(1) == labels[1300:]).float().mean()
        print(f"epoch {epoch + 1}: loss {total / len(unlabeled):.4f}, student accuracy {accuracy:.4f}")
