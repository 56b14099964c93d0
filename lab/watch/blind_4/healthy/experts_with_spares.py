"""A sparse mixture of experts for a function with four regimes; some of the experts are not needed."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(43)
REGIMES, EXPERTS = 4, 8
centres = 2.5 * torch.randn(REGIMES, 6)
slopes = 2 * torch.randn(REGIMES, 6)


def sample(count):
    regime = torch.randint(0, REGIMES, (count,))
    x = centres[regime] + torch.randn(count, 6)
    y = (slopes[regime] * (x - centres[regime])).sum(1, keepdim=True) + 3 * regime[:, None] + 0.1 * torch.randn(count, 1)
    return x, y


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, EXPERTS)
        self.experts = nn.ModuleList(nn.Linear(6, 1) for _ in range(EXPERTS))

    def forward(self, x):
        share = self.router(x).softmax(-1)
        gate, chosen = share.topk(2, dim=-1)
        out = torch.zeros(len(x), 1)
        for k, expert in enumerate(self.experts):
            rows, slot = (chosen == k).nonzero(as_tuple=True)
            if len(rows):
                out = out.index_add(0, rows, gate[rows, slot, None] * expert(x[rows]))
        return out, chosen


model = Mixture()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for step in range(1, 1001):
    x, y = sample(128)
    out, chosen = model(x)
    loss = F.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        used = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
        print(f"step {step} loss {loss.item():.4f} use of experts {used}")

with torch.no_grad():
    x, y = sample(2000)
    print(f"test mse {F.mse_loss(model(x)[0], y).item():.4f}")
