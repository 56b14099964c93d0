"""A plain loop: five blobs in the plane, a small network with dropout, a schedule by epoch, a validation after each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
centers = torch.randn(5, 12) * 1.2
labels = torch.randint(5, (1600,))
points = centers[labels] + torch.randn(1600, 12)
train_set, test_set = random_split(TensorDataset(points, labels), [1280, 320])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=64)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.3)

for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch} accuracy {right / len(test_set):.3f} lr {scheduler.get_last_lr()[0]:.4f}")
