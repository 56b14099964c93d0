"""An autoencoder that sees only one class: what it cannot restore is an anomaly."""

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

SEED = 48
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
zeros = x[y == 0]
train, held = zeros[:120], torch.cat([zeros[120:], x[y != 0][:400]])
strange = torch.cat([torch.zeros(len(zeros) - 120), torch.ones(400)])
model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 4), nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(60):
    for index in torch.randperm(len(train)).split(20):
        loss = (model(train[index]) - train[index]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            error = (model(held) - held).pow(2).mean(1)
        print(f"epoch {epoch} loss {loss.item():.5f} auc {roc_auc_score(strange, error):.4f}")
