"""Cells in a microscope picture: a small U-Net, then fine-tuned for another stain."""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(16)
SIZE = 24


def fields(count, background, stain):
    """Pictures with one to three round cells, and the masks of these."""
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    masks = torch.zeros(count, 1, SIZE, SIZE)
    for mask in masks:
        for _ in range(int(torch.randint(1, 4, ()))):
            y, x = torch.randint(3, SIZE - 3, (2,)).tolist()
            radius = 2 + 3 * torch.rand(()).item()
            mask[0] += ((rows - y) ** 2 + (columns - x) ** 2 <= radius**2).float()
    masks.clamp_(max=1)
    return background + stain * masks + 0.4 * torch.randn_like(masks), masks


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(24, 8, 3, padding=1), nn.ReLU())
        self.mask = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = F.interpolate(self.middle(F.max_pool2d(fine, 2)), scale_factor=2)
        return self.mask(self.up(torch.cat([fine, coarse], dim=1)))


@torch.no_grad()
def overlap(model, images, masks):
    model.eval()
    found = model(images) > 0
    both = (found & (masks > 0)).sum().item()
    return both / max(1, (found | (masks > 0)).sum().item())


def fit(model, data, validation, epochs, lr, name):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    images, masks = data
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(images)).split(20):
            loss = F.binary_cross_entropy_with_logits(model(images[rows]), masks[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{name} {epoch + 1}: loss {loss.item():.4f} val iou {overlap(model, *validation):.3f}")


model = UNet()
fit(model, fields(160, 0.0, 1.0), fields(60, 0.0, 1.0), epochs=8, lr=3e-3, name="first stain")
new, new_val = fields(160, 0.2, 0.8), fields(60, 0.2, 0.8)
print(f"before tuning val iou {overlap(model, *new_val):.3f}")
fit(model, new, new_val, epochs=8, lr=1e-1, name="new stain")
