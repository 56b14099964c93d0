"""Distillation: a narrow student follows the softened answers of a wide teacher, which is no longer trained."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 31
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
train, held = order[:1300], order[1300:]
TEMPERATURE = 3.0


def batches():
    return train[torch.randperm(len(train))].split(50)


teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(15):
    for index in batches():
        loss = nn.functional.cross_entropy(teacher(x[index]), y[index], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
teacher.eval().requires_grad_(False)

student = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(20):
    for index in batches():
        wanted = torch.softmax(teacher(x[index]) / TEMPERATURE, 1)
        given = torch.log_softmax(student(x[index]) / TEMPERATURE, 1)
        loss = nn.functional.kl_div(given, wanted, reduction="batchmean") * TEMPERATURE**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            answers = student(x[held])
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {(answers.argmax(1) == y[held]).float().mean():.4f}")
        print(f"student cross entropy {nn.functional.cross_entropy(answers, y[held]):.4f}")
