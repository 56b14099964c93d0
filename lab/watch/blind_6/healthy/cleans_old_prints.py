"""Removes grain from small prints; the grain is drawn again each time a print is read."""
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 97
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def grain(shape):
    return (0.35 * rng.normal(size=shape)).astype(np.float32)


class Prints(torch.utils.data.Dataset):
    """Pairs of a print with grain and the print itself."""

    def __init__(self, prints):
        self.prints = prints

    def __len__(self):
        return len(self.prints)

    def __getitem__(self, index):
        clean = self.prints[index]
        noisy = clean.copy()
        noisy += grain(noisy.shape)
        return torch.from_numpy(noisy), torch.from_numpy(clean)


class Cleaner(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, noisy):
        return noisy - self.net(noisy)


prints = (load_digits().images / 16).astype(np.float32)[rng.permutation(1797)][:, None]
train, kept = prints[:900], prints[900:1200]
test_clean = torch.from_numpy(kept.copy())
test_noisy = test_clean + torch.from_numpy(grain(kept.shape))
loader = torch.utils.data.DataLoader(Prints(train), batch_size=30, shuffle=True)
model = Cleaner()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for noisy, clean in loader:
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(test_noisy), test_clean)
    print(f"epoch {epoch + 1}: loss {total / len(loader):.5f}, test psnr {-10 * error.log10():.3f}")
