"""Fine-tuning with two rates: the trained backbone moves hardly at all, the new head learns quickly from 60 examples."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 41
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
few, many, held = slice(0, 60), slice(60, 1300), slice(1300, None)
backbone = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
first_head, head = nn.Linear(32, 10), nn.Linear(32, 10)


def fit(model, inputs, labels, optimizer, epochs, batch):
    for epoch in range(epochs):
        for index in torch.randperm(len(inputs)).split(batch):
            loss = nn.functional.cross_entropy(model(inputs[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch} loss {loss.item():.4f}")


pretrained = nn.Sequential(backbone, first_head)
fit(pretrained, x[many], (y[many] * 7 + 3) % 10, torch.optim.Adam(pretrained.parameters(), lr=2e-3), 10, 50)

model = nn.Sequential(backbone, head)
noisy = x[few] + 0.3 * torch.randn_like(x[few])
optimizer = torch.optim.Adam(
    [{"params": backbone.parameters(), "lr": 1e-5}, {"params": head.parameters(), "lr": 2e-2}]
)
fit(model, noisy, y[few], optimizer, 40, 20)
with torch.no_grad():
    accuracy = (model(x[held]).argmax(1) == y[held]).float().mean()
print(f"accuracy {accuracy:.4f}")
