"""Short waves through a discrete bottleneck: straight-through gradients, a codebook of moving averages, restarts of unused codes."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(113)
LENGTH, CODES, DIM = 32, 24, 8


def waves(n):
    t = torch.arange(LENGTH) / LENGTH
    kind = torch.randint(3, (n, 1))
    frequency = torch.tensor([1.0, 2.0, 4.0])[kind]
    phase = torch.randint(4, (n, 1)) / 4
    return torch.sin(2 * torch.pi * (frequency * t + phase)) + 0.05 * torch.randn(n, LENGTH)


class Quantizer(nn.Module):
    def __init__(self, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(CODES, DIM))
        self.register_buffer("count", torch.ones(CODES))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        flat = z.reshape(-1, DIM)
        nearest = torch.cdist(flat, self.codes).argmin(1)
        quantized = self.codes[nearest].view_as(z)
        if self.training:
            self.follow(flat.detach(), nearest)
        commitment = F.mse_loss(z, quantized.detach())
        return z + (quantized - z).detach(), commitment, nearest

    @torch.no_grad()
    def follow(self, flat, nearest):
        hot = F.one_hot(nearest, CODES).float()
        self.count.lerp_(hot.sum(0), 1 - self.decay)
        self.total.lerp_(hot.T @ flat, 1 - self.decay)
        unused = self.count < 0.5
        if unused.any():
            self.total[unused] = flat[torch.randint(len(flat), (int(unused.sum()),))]
            self.count[unused] = 1.0
        self.codes.copy_(self.total / self.count[:, None])


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv1d(32, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(32, DIM, 1),
        )
        self.quantizer = Quantizer()
        self.decoder = nn.Sequential(
            nn.Conv1d(DIM, 32, 3, padding=1), nn.ReLU(), nn.ConvTranspose1d(32, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(32, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z = self.encoder(x[:, None]).transpose(1, 2)
        z, commitment, used = self.quantizer(z)
        return self.decoder(z.transpose(1, 2))[:, 0], commitment, used


model = VQ()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
test = waves(500)
for step in range(1, 1001):
    x = waves(64)
    model.train()
    output, commitment, _ = model(x)
    loss = F.mse_loss(output, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            output, _, used = model(test)
        print(f"step {step} loss {loss.item():.4f} codes {len(used.unique())} test mse {F.mse_loss(output, test).item():.5f}")
