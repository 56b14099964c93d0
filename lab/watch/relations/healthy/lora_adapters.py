"""Low-rank adapters in a network that was trained before: only the adapters and a new head learn."""

import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T @ self.up.T)


torch.manual_seed(11)
mixing = torch.randn(16, 4)
x_old = torch.randn(1500, 16)
y_old = (x_old @ mixing).argmax(1)
network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
pretraining = torch.optim.Adam(network.parameters(), lr=3e-3)
for step in range(150):
    part = torch.randint(1500, (64,))
    loss = nn.functional.cross_entropy(network(x_old[part]), y_old[part])
    pretraining.zero_grad()
    loss.backward()
    pretraining.step()
print(f"pretrained, loss {loss.item():.3f}")

for name in ("0", "2"):
    setattr(network, name, LoRALinear(getattr(network, name)))
network[4] = nn.Linear(64, 3)
trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=5e-3)
other = mixing[:, :3] + 0.7 * torch.randn(16, 3)
x_new = torch.randn(800, 16)
y_new = (x_new @ other).argmax(1)
for step in range(300):
    part = torch.randint(800, (32,))
    loss = nn.functional.cross_entropy(network(x_new[part]), y_new[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59:
        print(f"step {step} loss {loss.item():.3f}")
