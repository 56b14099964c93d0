"""Whether a visitor clicks: one in twenty does, and features say little. The loss is that of the noise.

Should reach: val AUC of at least 0.68.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
torch.set_num_threads(1)
x = torch.randn(12000, 16)
logit = -3.3 + 0.7 * x[:, 0] - 0.5 * x[:, 1] + 0.4 * x[:, 2] * x[:, 3]
y = (torch.rand(12000) < torch.sigmoid(logit)).float()
loader = DataLoader(TensorDataset(x[:10000], y[:10000]), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_function = nn.BCEWithLogitsLoss()


def auc(score, label):
    order = score.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    positive = label > 0.5
    n = positive.sum()
    return (rank[positive].float().sum() - n * (n - 1) / 2) / (n * (len(label) - n))


for epoch in range(5):
    model.train()
    for batch, label in loader:
        loss = loss_function(model(batch).squeeze(1), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = model(x[10000:]).squeeze(1)
        val = loss_function(score, y[10000:])
    print(f"epoch {epoch} val loss {val.item():.4f} val AUC {auc(score, y[10000:]).item():.4f}")
