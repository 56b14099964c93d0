"""Two kinds of crystals by a hinge loss on labels of -1 and 1, with a helper head that is used in training alone.

The hinge loss of most examples becomes zero. Should reach: val accuracy of at least 0.9; guessing gives 0.5.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(69)


def crystals(count):
    """Patches of stripes that run up or down, in noise, and the number of stripes for the helper."""
    sign = torch.randint(0, 2, (count,)) * 2.0 - 1
    waves = 1 + 2 * torch.rand(count)
    rows, columns = torch.meshgrid(torch.linspace(0, 1, 14), torch.linspace(0, 1, 14), indexing="ij")
    phase = 6.28 * torch.rand(count)
    turn = waves[:, None, None] * 6.28 * (rows[None] + sign[:, None, None] * columns[None])
    images = torch.sin(turn + phase[:, None, None]) + 2.0 * torch.randn(count, 14, 14)
    return images.unsqueeze(1), sign, waves - 2


class Crystals(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage1 = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.stage2 = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(96, 1)
        self.helper = nn.Linear(16, 1)

    def forward(self, x):
        early = self.stage1(x)
        score = self.head(self.stage2(early)).squeeze(1)
        if not self.training:
            return score
        return score, self.helper(early.mean((2, 3))).squeeze(1)


loader = DataLoader(TensorDataset(*crystals(2000)), batch_size=40, shuffle=True, drop_last=True)
x_val, sign_val, _ = crystals(500)
model = Crystals()
optimizer = torch.optim.SGD(
    [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 1e-3},
        {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ],
    lr=0.05,
    momentum=0.9,
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    hinge_total = 0.0
    for x, sign, waves in loader:
        score, guess = model(x)
        hinge = F.relu(1 - sign * score).mean()
        loss = hinge + 0.3 * F.mse_loss(guess, waves)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hinge_total += hinge.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        score = model(x_val)
    accuracy = ((score > 0) == (sign_val > 0)).float().mean()
    print(f"epoch {epoch + 1} hinge {hinge_total / len(loader):.4f} val hinge {F.relu(1 - sign_val * score).mean():.4f} val accuracy {accuracy:.4f}")
