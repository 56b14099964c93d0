"""Alarms of three kinds, two of them rare: a weighted sampler shows them as often as the common one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

SEED = 39
torch.manual_seed(SEED)
directions = torch.randn(3, 12)


def alarms(count, shares):
    kind = torch.multinomial(torch.tensor(shares), count, replacement=True)
    return torch.tanh(directions[kind] * 0.9 + torch.randn(count, 12)), kind


train_x, train_y = alarms(2000, [0.9, 0.06, 0.04])
test_x, test_y = alarms(900, [0.34, 0.33, 0.33])
class_weights = 1.0 / torch.bincount(train_y).float()
sample_weights = class_weights[train_y]
sampler = WeightedRandomSampler(sample_weights, num_samples=len(train_x), replacement=True)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, sampler=sampler)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
for epoch in range(25):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = model(test_x).argmax(1) == test_y
    recalls = [right[test_y == kind].float().mean() for kind in range(3)]
    print(f"epoch {epoch} loss {loss.item():.4f} mean recall {sum(recalls) / 3:.4f}")
