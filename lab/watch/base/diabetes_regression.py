"""Progression of diabetes from ten measurements; the epoch best on validation is kept. Test r2 reaches about 0.45."""

import copy

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(2)

inputs, targets = load_diabetes(return_X_y=True)
inputs = torch.tensor(inputs, dtype=torch.float32)
targets = torch.tensor(targets, dtype=torch.float32).unsqueeze(1)

order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(4))
train, val, test = order[:240], order[240:320], order[320:]

inputs = (inputs - inputs[train].mean(0)) / inputs[train].std(0)
center, spread = targets[train].mean(), targets[train].std()
targets = (targets - center) / spread

model = nn.Sequential(
    nn.Linear(10, 64),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
)
loss_function = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
loader = DataLoader(TensorDataset(inputs[train], targets[train]), batch_size=16, shuffle=True)


def r2(rows):
    model.eval()
    with torch.no_grad():
        residual = ((model(inputs[rows]) - targets[rows]) ** 2).sum()
    total = ((targets[rows] - targets[rows].mean()) ** 2).sum()
    return (1 - residual / total).item()


best, best_state = float("-inf"), copy.deepcopy(model.state_dict())
for epoch in range(80):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
    score = r2(val)
    if score > best:
        best, best_state = score, copy.deepcopy(model.state_dict())
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} train loss {loss.item():.3f} val r2 {score:.3f} best {best:.3f}")

model.load_state_dict(best_state)
print(f"test r2 {r2(test):.3f}")
