"""Several tasks on one trunk: the digit, its parity, whether it is above four, and how much ink it takes."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 35
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
targets = {"digit": y, "parity": y % 2, "high": (y > 4).long(), "ink": x.mean(1, keepdim=True) * 10}
criteria = {name: nn.MSELoss() if name == "ink" else nn.CrossEntropyLoss() for name in targets}
weights = {"digit": 1.0, "parity": 0.5, "high": 0.5, "ink": 0.2}


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.heads = nn.ModuleDict({"digit": nn.Linear(48, 10), "parity": nn.Linear(48, 2), "high": nn.Linear(48, 2), "ink": nn.Linear(48, 1)})

    def forward(self, x):
        shared = self.trunk(x)
        return {name: head(shared) for name, head in self.heads.items()}


model = Tasks()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(30):
    for index in torch.randperm(1300).split(50):
        outputs = model(x[index])
        loss = torch.zeros(())
        for name, output in outputs.items():
            loss = loss + weights[name] * criteria[name](output, targets[name][index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        outputs = model(x[1300:])
    accuracy = (outputs["digit"].argmax(1) == y[1300:]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} ink error {criteria['ink'](outputs['ink'], targets['ink'][1300:]):.4f} digit accuracy {accuracy:.4f}")
