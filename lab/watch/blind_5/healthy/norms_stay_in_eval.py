"""Fine-tuning on batches of four: the normalizations keep the statistics of the large first training, in eval mode."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 51
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
model = nn.Sequential(
    nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10)
)


def epoch(optimizer, inputs, labels, batch):
    for index in torch.randperm(len(inputs)).split(batch):
        loss = nn.functional.cross_entropy(model(inputs[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model.train()
for number in range(10):
    loss = epoch(optimizer, x[:1000], y[:1000], 100)
print(f"first training loss {loss:.4f}")

turned = x.view(-1, 8, 8).transpose(1, 2).flatten(1)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for number in range(15):
    model.train()
    for module in model:
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    loss = epoch(optimizer, turned[1000:1300], y[1000:1300], 4)
    model.eval()
    with torch.no_grad():
        accuracy = (model(turned[1300:]).argmax(1) == y[1300:]).float().mean()
    print(f"epoch {number} loss {loss:.4f} accuracy {accuracy:.4f}")
