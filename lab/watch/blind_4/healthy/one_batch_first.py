"""Before the long run: can the network learn eight examples by heart? The loss should go to zero on this one batch."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.Conv2d(cout, cout, 3, padding=1))
        self.skip = nn.Conv2d(cin, cout, 1)

    def forward(self, x):
        return F.max_pool2d(F.relu(self.conv(x) + self.skip(x)), 2)


net = nn.Sequential(Block(3, 16), Block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
images = torch.rand(8, 3, 16, 16)
labels = torch.randint(0, 10, (8,))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for step in range(1, 201):
    loss = F.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step} loss {loss.item():.5f}")
fitted = (net(images).argmax(1) == labels).float().mean().item()
print(f"fitted share {fitted:.3f}")
