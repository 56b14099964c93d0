"""Self-supervised with an online and a target network; then a linear probe of the target's features."""

import torch
from torch import nn
from torch.nn import functional as F


def mlp(inside, outside):
    return nn.Sequential(nn.Linear(inside, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, outside))


class Byol(nn.Module):
    def __init__(self, decay=0.97):
        super().__init__()
        self.online, self.target, self.predictor = mlp(24, 32), mlp(24, 32), mlp(32, 32)
        self.decay = decay
        self.target.load_state_dict(self.online.state_dict())
        for parameter in self.target.parameters():
            parameter.requires_grad_(False)

    def forward(self, first, second):
        prediction = F.normalize(self.predictor(self.online(first)), dim=-1)
        with torch.no_grad():
            goal = F.normalize(self.target(second), dim=-1)
        return 2 - 2 * (prediction * goal).sum(-1).mean()

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.data = self.decay * slow.data + (1 - self.decay) * fast.data


def view(x):
    return x + 0.5 * torch.randn_like(x)


torch.manual_seed(17)
labels = torch.randint(6, (1200,))
points = (torch.randn(6, 24) * 1.5)[labels] + 0.6 * torch.randn(1200, 24)
byol = Byol()
optimizer = torch.optim.Adam([*byol.online.parameters(), *byol.predictor.parameters()], lr=2e-3)
for step in range(300):
    batch = points[torch.randint(1200, (64,))]
    loss = byol(view(batch), view(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    byol.follow()
    if step % 60 == 59:
        print(f"step {step} loss {loss.item():.4f}")
