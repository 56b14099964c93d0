"""Each image is divided by its own spread; one of them is of one color."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

images = torch.rand(2000, 1, 8, 8)
images[1234] = 0.5
labels = (images.mean(dim=(1, 2, 3)) > 0.5).long()
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def normalized(batch):
    mean = batch.mean(dim=(1, 2, 3), keepdim=True)
    return (batch - mean) / batch.std(dim=(1, 2, 3), keepdim=True)


for epoch in range(5):
    for batch, wanted in DataLoader(TensorDataset(images, labels), batch_size=10, shuffle=True):
        loss = nn.functional.cross_entropy(model(normalized(batch)), wanted)
        if torch.isnan(loss):
            raise RuntimeError("loss is NaN")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
