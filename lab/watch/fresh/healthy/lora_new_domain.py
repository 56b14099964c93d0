"""A text classifier learns one domain, is frozen, and is moved to another one by low-rank additions to its layers.

Should reach: domain B accuracy of at least 0.85; before the fine-tuning about 0.4.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(27)
VOCABULARY, LENGTH, WIDTH = 200, 12, 48
WORTH = torch.randn(VOCABULARY)
WORTH[1] = 0


def reviews(count, ironic):
    """Words have a worth, the sign of the sum decides; where people are ironic, a first word turns it."""
    tokens = torch.randint(2, VOCABULARY, (count, LENGTH))
    marked = torch.rand(count) < 0.5
    tokens[marked, 0] = 1
    score = WORTH[tokens].sum(1) * torch.where(marked & ironic, -1, 1)
    return tokens, (score > 0).long()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        weights = (self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5).softmax(2)
        return self.out(weights @ self.value(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, WIDTH))
        self.head = nn.Linear(2 * WIDTH, 2)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(self.norm1(x))
        x = x + self.feed(self.norm2(x))
        return self.head(torch.cat([x.mean(1), x[:, 0]], 1))


class LoRA(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + 2 * (x @ self.down.T) @ self.up.T


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def fit(model, optimizer, data, val, epochs, name):
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(*data), batch_size=64, shuffle=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{name} epoch {epoch + 1} loss {total / len(loader):.4f} {name} accuracy {accuracy(model, val):.4f}")


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
fit(model, optimizer, reviews(6000, True), reviews(1000, True), 8, "domain A")

val_b = reviews(1000, False)
print(f"before: domain B accuracy {accuracy(model, val_b):.4f}")
model.requires_grad_(False)
for part in ("query", "value", "out"):
    setattr(model.attention, part, LoRA(getattr(model.attention, part)))
model.feed[0], model.feed[2] = LoRA(model.feed[0]), LoRA(model.feed[2])
trained = [p for p in model.parameters() if p.requires_grad]
print(f"{sum(p.numel() for p in trained)} of {sum(p.numel() for p in model.parameters())} parameters are trained")
fit(model, torch.optim.Adam(trained, lr=3e-3), reviews(4000, False), val_b, 8, "domain B")
