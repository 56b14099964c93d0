"""Noise prediction on a spiral: the loss falls fast to the noise that nobody can predict, and then stands."""

import torch
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)
STEPS = 50
beta = torch.linspace(1e-4, 0.2, STEPS)
alpha = (1 - beta).cumprod(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = nn.Embedding(STEPS, 32)
        self.inside = nn.Linear(2, 32)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(32, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))

    def forward(self, x, t):
        return self.body(self.inside(x) + self.times(t))


def spiral(count):
    angle = torch.rand(count).sqrt() * 9
    return torch.stack([angle.cos(), angle.sin()], 1) * angle[:, None] / 6


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
average = 1.0
for step in range(1, 801):
    x = spiral(128)
    t = torch.randint(STEPS, (128,))
    noise = torch.randn_like(x)
    noisy = alpha[t].sqrt()[:, None] * x + (1 - alpha[t]).sqrt()[:, None] * noise
    loss = nn.functional.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.98 * average + 0.02 * loss.item()
    if step % 100 == 0:
        print(f"step {step} running loss {average:.4f}")
