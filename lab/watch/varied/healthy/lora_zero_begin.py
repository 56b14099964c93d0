"""Low-rank additions to frozen layers: one factor begins at zero, the other at a small normal."""

import torch
from torch import nn

torch.manual_seed(15)
torch.set_num_threads(1)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Linear(base.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.normal_(self.lora_a.weight, std=0.02)
        nn.init.zeros_(self.lora_b.weight)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * self.lora_b(self.lora_a(x))


def data(count, turn):
    x = torch.randn(count, 32)
    return x, ((x[:, :16].sum(1) + turn * x[:, 16:].sum(1)) > 0).long()


model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(200):
    x, y = data(64, 1.0)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
for number in (0, 2, 4):
    model[number] = LoRALinear(model[number])
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-3)
xv, yv = data(500, -1.0)
for step in range(1, 401):
    x, y = data(32, -1.0)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            print(f"step {step} loss {loss.item():.3f} val accuracy {(model(xv).argmax(1) == yv).float().mean():.4f}")
        model.train()
