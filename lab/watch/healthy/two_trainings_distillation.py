"""Two trainings one after the other: a large teacher, then a small student that learns from the teacher's soft answers.

Should reach: student accuracy of at least 0.93.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(2)
torch.set_num_threads(1)

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 8.0 - 1.0
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1350], order[1350:]


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x[test]).argmax(1) == y[test]).float().mean().item()


def batches(size=30):
    return train[torch.randperm(len(train))].split(size)


teacher = nn.Sequential(
    nn.Linear(64, 200), nn.ReLU(), nn.Dropout(0.2), nn.Linear(200, 200), nn.ReLU(), nn.Dropout(0.2), nn.Linear(200, 10)
)
optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-3)
for epoch in range(8):
    teacher.train()
    for index in batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(teacher(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"teacher epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(teacher):.4f}")

teacher.eval()
temperature = 3.0
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
for epoch in range(15):
    student.train()
    mean_loss = 0.0
    for index in batches():
        with torch.no_grad():
            soft = F.softmax(teacher(x[index]) / temperature, dim=1)
        logits = student(x[index])
        distill = F.kl_div(F.log_softmax(logits / temperature, dim=1), soft, reduction="batchmean") * temperature**2
        loss = 0.7 * distill + 0.3 * F.cross_entropy(logits, y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss += loss.item() * len(index) / len(train)
    print(f"student epoch {epoch} loss {mean_loss:.4f} student accuracy {accuracy(student):.4f}")
