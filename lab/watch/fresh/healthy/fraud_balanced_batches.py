"""One payment in sixty is a fraud: a sampler puts eight frauds into each batch, validation keeps the true share.

Should reach: val average precision of at least 0.5; chance gives about 0.017.
"""

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(52)
rng = np.random.default_rng(52)


def payments(count):
    amount = rng.lognormal(3, 1, count)
    hour = rng.integers(0, 24, count)
    distance = rng.exponential(10, count)
    other = rng.normal(size=(count, 5))
    odd = 1.2 * (np.log(amount) - 3) + 2.0 * (hour < 5) + 0.08 * (distance - 10) + other[:, 0] * other[:, 1]
    fraud = odd + rng.logistic(0, 0.5, count) > 5.4
    x = np.column_stack([np.log(amount) - 3, np.sin(hour / 3.82), np.cos(hour / 3.82), np.log1p(distance) - 2, other])
    return torch.tensor(x).float(), torch.tensor(fraud).float()


class BalancedBatches(Sampler):
    """Batches of 64 rows, eight of them frauds."""

    def __init__(self, labels, batches):
        self.frauds, self.others = (labels == 1).nonzero().squeeze(1), (labels == 0).nonzero().squeeze(1)
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            frauds = self.frauds[torch.randint(len(self.frauds), (8,))]
            others = self.others[torch.randint(len(self.others), (56,))]
            yield torch.cat([frauds, others])[torch.randperm(64)].tolist()


x_train, y_train = payments(30_000)
x_val, y_val = payments(10_000)
print(f"share of frauds: {y_train.mean():.4f}")
loader = DataLoader(TensorDataset(x_train, y_train), batch_sampler=BalancedBatches(y_train, 150))
model = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        precision = average_precision_score(y_val, model(x_val))
    print(f"epoch {epoch + 1} loss {np.mean(losses):.4f} val average precision {precision:.4f}")
