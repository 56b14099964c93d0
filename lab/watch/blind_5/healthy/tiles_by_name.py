"""Plain loop: a small CNN on digit tiles stored under numbered names; the report lists the held-out tiles by class."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 11
torch.manual_seed(SEED)
digits = load_digits()
store = {f"tile_{number}.png": image for number, image in enumerate(digits.images)}
annotations = digits.target

names = sorted(store, key=lambda name: int(name[5:-4]))
images = torch.tensor(np.stack([store[name] for name in names]), dtype=torch.float32)[:, None] / 16
labels = torch.tensor(annotations)
order = torch.randperm(len(images))
train, held = order[:1400], order[1400:]
held = held[torch.argsort(labels[held], stable=True)]

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(images[train], labels[train]), batch_size=50, shuffle=True)
for epoch in range(12):
    model.train()
    for batch, target in loader:
        loss = criterion(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = torch.cat([model(images[part]).argmax(1) == labels[part] for part in held.split(40)])
    print(f"epoch {epoch} loss {loss.item():.4f} held-out accuracy {right.float().mean():.4f}")
