"""The schedule was planned for whole batches, and each epoch has one more."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

EPOCHS, SIZE, BATCH = 4, 1010, 20
data = TensorDataset(torch.randn(SIZE, 10), torch.randint(3, (SIZE,)))
model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.1, total_steps=EPOCHS * (SIZE // BATCH)
)
for epoch in range(EPOCHS):
    for x, y in DataLoader(data, batch_size=BATCH, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}, rate {scheduler.get_last_lr()[0]:.4f}")
