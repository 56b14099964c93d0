"""A wide teacher is trained on labels; a narrow student only sees unlabeled images and the teacher's logits, computed once."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(33)
DIM, CLASSES = 30, 12
centers = torch.randn(CLASSES, 2, DIM) * 1.15


def sample(n):
    y = torch.randint(CLASSES, (n,))
    mode = torch.randint(2, (n,))
    return centers[y, mode] + 1.1 * torch.randn(n, DIM), y


def mlp(width):
    return nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def train_teacher(x, y, epochs=10):
    teacher = mlp(192)
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-3, weight_decay=1e-2)
    for _ in range(epochs):
        teacher.train()
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
            loss = F.cross_entropy(teacher(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return teacher.eval()


@torch.no_grad()
def soft_targets(teacher, dataset):
    loader = DataLoader(dataset, batch_size=256, shuffle=False)
    return torch.cat([teacher(xb) for (xb,) in loader])


def distill(teacher, pool, epochs=14, temperature=3.0):
    logits = soft_targets(teacher, TensorDataset(pool))
    student = mlp(40)
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    for epoch in range(epochs):
        student.train()
        total = 0.0
        for xb, target in DataLoader(TensorDataset(pool, logits), batch_size=64, shuffle=True):
            log_q = F.log_softmax(student(xb) / temperature, dim=1)
            p = F.softmax(target / temperature, dim=1)
            loss = F.kl_div(log_q, p, reduction="batchmean") * temperature**2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        print(f"distill epoch {epoch} kl {total / len(pool):.4f} agreement {accuracy(student, x_val, teacher(x_val).argmax(1)):.4f}")
    return student


x_labeled, y_labeled = sample(3000)
x_val, y_val = sample(1500)
pool, _ = sample(4000)
teacher = train_teacher(x_labeled, y_labeled)
print(f"teacher: {accuracy(teacher, x_val, y_val):.4f}")
student = distill(teacher, pool)
print(f"student: {accuracy(student, x_val, y_val):.4f}")
