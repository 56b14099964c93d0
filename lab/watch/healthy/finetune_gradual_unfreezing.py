"""An encoder pretrained on one task is fine-tuned on another: thawed layer by layer from the top, lower layers at lower rates.

Should reach: val accuracy of at least 0.93 on the new task from 300 labeled images.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)

digits = load_digits()
x = (torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) - 4.9) / 6.0
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
source, target, val = order[:1000], order[1000:1300], order[1300:]


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU(), nn.MaxPool2d(2))


class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.stages = nn.ModuleList([block(1, 16), block(16, 32), block(32, 64)])
        self.head = nn.Linear(64, outputs)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.flatten(1))


def run_epoch(model, optimizer, indices, labels, batch_size):
    model.train()
    total = 0.0
    for index in indices[torch.randperm(len(indices))].split(batch_size):
        loss = nn.functional.cross_entropy(model(x[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    return total / len(indices)


def accuracy(model, labels):
    model.eval()
    with torch.no_grad():
        return (model(x[val]).argmax(1) == labels[val]).float().mean().item()


# Source task: which of five pairs (0-1, 2-3, ...) does the digit belong to?
pairs = y // 2
model = Net(5)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    loss = run_epoch(model, optimizer, source, pairs, 50)
    print(f"pretraining {epoch}: loss {loss:.4f} accuracy {accuracy(model, pairs):.4f}")

# New task: the digit itself. The head first, then one more stage every three epochs.
model.head = nn.Linear(64, 10)
model.stages.requires_grad_(False)
groups = [{"params": model.head.parameters(), "lr": 5e-3}]
for depth, stage in enumerate(reversed(model.stages), start=1):
    groups.append({"params": stage.parameters(), "lr": 5e-3 * 0.5**depth})
optimizer = torch.optim.AdamW(groups, weight_decay=0.01)

for epoch in range(15):
    if epoch % 3 == 0 and 0 < epoch <= 9:
        stage = model.stages[-(epoch // 3)]
        stage.requires_grad_(True)
        print(f"thawing stage {len(model.stages) - epoch // 3}")
    loss = run_epoch(model, optimizer, target, y, 20)
    print(f"fine-tuning {epoch}: loss {loss:.4f} val accuracy {accuracy(model, y):.4f}")
