"""Takes noise out of waves: a small U-Net in one dimension."""

import torch
from torch import nn

torch.manual_seed(19)
t = torch.linspace(0, 1, 64)
waves = torch.stack(
    [torch.sin(6.3 * (1 + 4 * torch.rand(())) * t + 6 * torch.rand(())) for _ in range(1400)]
)[:, None]


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, 5, padding=2), nn.GroupNorm(4, outputs), nn.GELU()
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = block(1, 16), block(16, 32)
        self.up1, self.last = block(48, 16), nn.Conv1d(16, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(nn.functional.max_pool1d(first, 2))
        wide = nn.functional.interpolate(second, scale_factor=2)
        return self.last(self.up1(torch.cat([first, wide], 1)))


model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
for epoch in range(8):
    model.train()
    for part in torch.randperm(1200).split(40):
        clean = waves[part]
        noisy = clean + 0.5 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        held = waves[1200:]
        error = nn.functional.mse_loss(model(held + 0.5 * torch.randn_like(held)), held)
    print(f"epoch {epoch} loss {loss.item():.4f} error {error.item():.4f}")
