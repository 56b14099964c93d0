"""Self-supervised features of handwritten digits: two shifted and noisy views, in-batch negatives, then a nearest-neighbour probe."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def shifted(images):
    padded = F.pad(images, (2, 2, 2, 2))
    rows, cols = torch.randint(1, 4, (2, len(images)))
    return torch.stack([p[:, r : r + 8, c : c + 8] for p, r, c in zip(padded, rows, cols)])


def augment(images):
    scale = 0.6 + 0.8 * torch.rand(len(images), 1, 1, 1)
    return shifted(images) * scale + 0.15 * torch.randn_like(images)


class Encoder(nn.Module):
    def __init__(self, width=24, out=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(8 * width, 96), nn.ReLU(), nn.Linear(96, out))

    def forward(self, x):
        return self.projector(self.features(x))


def info_nce(a, b, temperature=0.2):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(-1e9)
    n = len(a)
    positives = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, positives)


@torch.no_grad()
def probe(encoder, x_bank, y_bank, x_query, y_query, k=5):
    encoder.eval()
    bank = F.normalize(encoder(x_bank), dim=1)
    query = F.normalize(encoder(x_query), dim=1)
    nearest = (query @ bank.T).topk(k, dim=1).indices
    return (y_bank[nearest].mode(1).values == y_query).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(17)
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(images))
    pool, held = order[:1300], order[1300:]
    x_query = shifted(images[held])
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3, weight_decay=1e-6)
    for epoch in range(20):
        encoder.train()
        total = 0.0
        batches = pool[torch.randperm(len(pool))].split(100)
        for index in batches:
            batch = images[index]
            first, second = augment(batch), augment(batch)
            loss = info_nce(encoder(first), encoder(second))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 4 == 3:
            # Few labels: ten images of each class are in the bank.
            bank = torch.cat([pool[labels[pool] == c][:10] for c in range(10)])
            score = probe(encoder, images[bank], labels[bank], x_query, labels[held], k=3)
            print(f"epoch {epoch + 1:2d} nt-xent {total / len(batches):.4f} knn {score:.4f}")
