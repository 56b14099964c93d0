"""Progression of diabetes from 250 patients: many epochs, stopped when validation has not become better for 20, best weights kept.

Should reach: test R2 of at least 0.4; the mean gives 0.
"""

import copy

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(57)

data = load_diabetes()
x, y = torch.tensor(data.data).float() * 21, torch.tensor(data.target).float()
order = torch.randperm(len(x))
train, val, test = order[:250], order[250:340], order[340:]
y = (y - y[train].mean()) / y[train].std()

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
best_loss, best_state, waited = float("inf"), None, 0


def evaluate(rows):
    model.eval()
    with torch.no_grad():
        return criterion(model(x[rows]), y[rows]).item()


for epoch in range(500):
    model.train()
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(25):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    val_loss = evaluate(val)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: train loss {total / 10:.4f} val loss {val_loss:.4f}")
    if val_loss < best_loss:
        best_loss, best_state, waited = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    if waited == 20:
        print(f"stopped after epoch {epoch + 1}")
        break

model.load_state_dict(best_state)
test_loss = evaluate(test)
print(f"test loss {test_loss:.4f}, test R2 {1 - test_loss / y[test].var(unbiased=False).item():.4f}")
