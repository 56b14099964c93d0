"""Stochastic weight averaging with a constant rate at the end; batch statistics are made anew for the average."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(35)
torch.set_num_threads(1)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1300], order[1300:]
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
for epoch in range(7):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
    if epoch >= 3:
        average.update_parameters(model)
        schedule.step()
update_bn(loader, average)
average.eval()
with torch.no_grad():
    print(f"test accuracy {(average(x[test]).argmax(1) == y[test]).float().mean():.4f}")
