"""A small student learns digits from a larger teacher, mostly from images without labels."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(21)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
labelled, pool, test = order[:700], order[700:1400], order[1400:]
TEMPERATURE = 3.0


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(x[test]).argmax(1) == y[test]).float().mean().item()


teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for step in range(400):
    rows = labelled[torch.randint(len(labelled), (64,))]
    loss = F.cross_entropy(teacher(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher accuracy {accuracy(teacher):.4f}")
teacher.eval().requires_grad_(False)

student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(1, 601):
    rows = pool[torch.randint(len(pool), (64,))]
    wanted = F.softmax(teacher(x[rows]) / TEMPERATURE, dim=1)
    given = F.log_softmax(student(x[rows]) / TEMPERATURE, dim=1)
    loss = F.kl_div(given, wanted, reduction="batchmean") * TEMPERATURE**2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} divergence {loss.item():.4f}")
print(f"student accuracy {accuracy(student):.4f}")
