"""Digits without labels: two disturbed views of an image attract each other, all others repel.

Should reach: nearest-neighbor accuracy of at least 0.90 in the learned space. The loss ends well above zero by nature.
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)
TEMPERATURE = 0.2

data = load_digits()
images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16.0
labels = torch.tensor(data.target)
order = torch.randperm(len(images))
train, val = order[:1400], order[1400:]


def augment(x):
    """Shift by at most one pixel, change the contrast, add noise."""
    padded = F.pad(x, (1, 1, 1, 1))
    row, column = torch.randint(0, 3, (2,)).tolist()
    x = padded[:, :, row : row + 8, column : column + 8]
    contrast = 0.8 + 0.4 * torch.rand(len(x), 1, 1, 1)
    return x * contrast + 0.1 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(512, 64),
        )
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        features = self.trunk(x)
        return features, F.normalize(self.projector(features), dim=1)


def info_nce(a, b):
    z = torch.cat([a, b])
    similarity = z @ z.T / TEMPERATURE
    similarity.fill_diagonal_(-1e9)
    n = len(a)
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    return F.cross_entropy(similarity, targets)


def neighbor_accuracy(encoder):
    encoder.eval()
    with torch.no_grad():
        memory = F.normalize(encoder(images[train])[0], dim=1)
        query = F.normalize(encoder(images[val])[0], dim=1)
        nearest = (query @ memory.T).argmax(1)
    return (labels[train][nearest] == labels[val]).float().mean().item()


encoder = Encoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for epoch in range(1, 13):
    encoder.train()
    total, batches = 0.0, 0
    for index in train[torch.randperm(len(train))].split(100):
        _, first = encoder(augment(images[index]))
        _, second = encoder(augment(images[index]))
        loss = info_nce(first, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, batches = total + loss.item(), batches + 1
    print(f"epoch {epoch}: loss {total / batches:.3f} nearest-neighbor accuracy {neighbor_accuracy(encoder):.4f}")
