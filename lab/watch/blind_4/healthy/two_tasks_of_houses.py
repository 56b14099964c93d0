"""One trunk, two heads: the kind of a house and its yearly heating demand."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(23)
x = torch.randn(3000, 14)
kind = (x[:, :3] + 0.3 * torch.randn(3000, 3)).argmax(1)
heat = 2 * torch.tanh(x[:, 3] + x[:, 4]) + x[:, 5] * (kind == 1) + 0.1 * torch.randn(3000)
demand = 9000 + 1500 * heat
centre, spread = demand.mean(), demand.std()
data = TensorDataset(x, kind, (demand - centre) / spread)
train, held = random_split(data, [2400, 600])


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.kind = nn.Linear(64, 3)
        self.demand = nn.Linear(64, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.demand(h).squeeze(-1)


model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(train, batch_size=64, shuffle=True)

for epoch in range(10):
    sums = [0.0, 0.0]
    for xb, kb, db in loader:
        kind_logits, demand_hat = model(xb)
        kind_loss = F.cross_entropy(kind_logits, kb)
        demand_loss = F.mse_loss(demand_hat, db)
        loss = kind_loss + demand_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums = [sums[0] + kind_loss.item(), sums[1] + demand_loss.item()]
    print(f"epoch {epoch + 1} kind {sums[0] / len(loader):.4f} demand {sums[1] / len(loader):.4f}")

with torch.no_grad():
    xb, kb, db = next(iter(DataLoader(held, batch_size=600)))
    kind_logits, demand_hat = model(xb)
    error = ((demand_hat - db).abs() * spread).mean().item()
print(f"kind accuracy {(kind_logits.argmax(1) == kb).float().mean().item():.4f} demand error {error:.1f} kWh")
