"""Clicks in two of a hundred cases: cross entropy near that of the base rate, judged by ranking."""

import torch
from torch import nn

torch.manual_seed(34)
torch.set_num_threads(1)
users, items = torch.randn(200) * 0.8, torch.randn(100) * 0.8


def views(count):
    u, i = torch.randint(200, (count,)), torch.randint(100, (count,))
    return u, i, torch.bernoulli(torch.sigmoid(users[u] + items[i] - 4.3))


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.i = nn.Embedding(200, 1), nn.Embedding(100, 1)
        self.base = nn.Parameter(torch.tensor(-4.0))
        nn.init.zeros_(self.u.weight)
        nn.init.zeros_(self.i.weight)

    def forward(self, u, i):
        return (self.u(u) + self.i(i)).squeeze(1) + self.base


model = Clicks()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
u, i, y = views(40000)
uv, iv, yv = views(10000)
for epoch in range(2):
    for rows in torch.randperm(len(y)).split(256):
        loss = nn.functional.binary_cross_entropy_with_logits(model(u[rows], i[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        score = model(uv, iv)
    clicked, other = score[yv > 0], score[yv == 0]
    print(f"epoch {epoch} val loss {nn.functional.binary_cross_entropy_with_logits(score, yv):.4f} val auc {(clicked[:, None] > other).float().mean():.4f}")
