"""A small diffusion model of two-dimensional points: the network learns to tell the noise in a noisy point.

The loss stays well above zero by nature. What counts is where the samples lie.
Should reach: sample distance to the nearest blob below 0.25 (real points: 0.19; pure noise: 0.79).
"""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = 50
BETAS = torch.linspace(1e-3, 0.15, STEPS)
ALPHAS = 1 - BETAS
ALPHA_BARS = torch.cumprod(ALPHAS, 0)
CENTERS = 1.5 * torch.tensor([[1.0, 0.0], [0.31, 0.95], [-0.81, 0.59], [-0.81, -0.59], [0.31, -0.95]])


def blobs(count):
    return CENTERS[torch.randint(0, len(CENTERS), (count,))] + 0.15 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        phase = torch.arange(STEPS).unsqueeze(1) / STEPS * 1.5 * 2 ** (torch.arange(8) / 2)
        self.register_buffer("time", torch.cat([phase.sin(), phase.cos()], dim=1))
        self.layers = nn.Sequential(
            nn.Linear(2 + 16, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x, t):
        return self.layers(torch.cat([x, self.time[t]], dim=1))


@torch.no_grad()
def sample(model, count):
    model.eval()
    x = torch.randn(count, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((count,), t))
        x = (x - BETAS[t] / (1 - ALPHA_BARS[t]).sqrt() * noise) / ALPHAS[t].sqrt()
        if t > 0:
            x = x + (BETAS[t] * (1 - ALPHA_BARS[t - 1]) / (1 - ALPHA_BARS[t])).sqrt() * torch.randn_like(x)
    model.train()
    return x


def distance_to_blobs(points):
    return torch.cdist(points, CENTERS).min(1).values.mean().item()


data = blobs(4000)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
print(f"distance of real points {distance_to_blobs(data):.3f}, of pure noise {distance_to_blobs(torch.randn(2000, 2)):.3f}")
for epoch in range(1, 31):
    losses = []
    for index in torch.randperm(len(data)).split(100):
        x = data[index]
        t = torch.randint(0, STEPS, (len(x),))
        noise = torch.randn_like(x)
        bar = ALPHA_BARS[t].unsqueeze(1)
        loss = ((model(bar.sqrt() * x + (1 - bar).sqrt() * noise, t) - noise) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 5 == 0:
        distance = distance_to_blobs(sample(model, 1000))
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, sample distance to the nearest blob {distance:.4f}")
