"""A small network learns from a larger one that was trained before."""

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
x, y = make_classification(
    2400, 20, n_informative=10, n_classes=5, n_clusters_per_class=2, random_state=31
)
x, y = torch.tensor(x).float(), torch.tensor(y)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

teacher = nn.Sequential(
    nn.Linear(20, 128),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(128, 5),
)
student = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 5))


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()


optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(6):
    teacher.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(inputs), labels).backward()
        optimizer.step()
print("teacher", accuracy(teacher))

teacher.eval()
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
temperature = 2.0
for epoch in range(8):
    student.train()
    for inputs, labels in loader:
        with torch.no_grad():
            soft = nn.functional.softmax(teacher(inputs) / temperature, dim=1)
        scores = student(inputs)
        learned = nn.functional.log_softmax(scores / temperature, dim=1)
        imitation = nn.functional.kl_div(learned, soft, reduction="batchmean") * temperature**2
        loss = 0.7 * imitation + 0.3 * nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} student {accuracy(student):.3f}")
