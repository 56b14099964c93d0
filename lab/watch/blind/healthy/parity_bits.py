"""Learns the parity of 5 of 16 bits: the loss stays at chance for a long time and then drops."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


class ParityNet(nn.Module):
    def __init__(self, bits: int, width: int):
        super().__init__()
        self.fc1 = nn.Linear(bits, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.out(x).squeeze(-1)


def sample(n):
    bits = torch.randint(0, 2, (n, 16)).float()
    parity = bits[:, [1, 4, 7, 11]].sum(1) % 2
    return bits * 2 - 1, parity


net = ParityNet(16, 128)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
val_x, val_y = sample(1000)
for it in range(3000):
    x, y = sample(64)
    loss = F.binary_cross_entropy_with_logits(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 250 == 0 or it == 2999:
        with torch.no_grad():
            acc = ((net(val_x) > 0) == (val_y > 0.5)).float().mean().item()
        print(f"iter {it} loss {loss.item():.4f} val_acc {acc:.4f}")
