"""Several tags an example, with a dataset class and workers' style of loading."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(15)
torch.manual_seed(15)


class Tags(Dataset):
    def __init__(self, count):
        self.x = rng.normal(size=(count, 24)).astype("float32")
        weights = np.random.default_rng(99).normal(size=(24, 6))
        self.y = (self.x @ weights > 1.5).astype("float32")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return torch.from_numpy(self.x[index]), torch.from_numpy(self.y[index])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 64), nn.LayerNorm(64), nn.ReLU(), nn.Dropout(0.1))
        self.tags = nn.Linear(64, 6)

    def forward(self, x):
        return self.tags(self.layers(x))


train_loader = DataLoader(Tags(1000), batch_size=25, shuffle=True, drop_last=True)
test_loader = DataLoader(Tags(200), batch_size=50)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    hits = []
    with torch.no_grad():
        for x, y in test_loader:
            hits.append(((torch.sigmoid(model(x)) > 0.5).float() == y).float().mean())
    print(f"epoch {epoch} loss {loss.item():.3f} tags right {torch.stack(hits).mean().item():.3f}")
