"""A smoke test of a pipeline before the real run: sixteen steps, the loss still falls, nobody wants more."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(31)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 17):
    rows = train[torch.randint(len(train), (64,))]
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        with torch.no_grad():
            output = model(x[test])
        print(f"step {step} loss {loss.item():.3f} test loss {nn.functional.cross_entropy(output, y[test]):.3f} test accuracy {(output.argmax(1) == y[test]).float().mean():.4f}")
