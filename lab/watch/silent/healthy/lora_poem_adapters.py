"""A character model is trained, then adapted to another style with low-rank adapters only."""

import torch
from torch import nn

torch.manual_seed(3)
letters = 20
chain = torch.softmax(2.5 * torch.randn(letters, letters), 1)
other = torch.softmax(2.5 * torch.randn(letters, letters), 1)


def text(table, count, length=24):
    rows = [torch.randint(letters, (count,))]
    for _ in range(length):
        rows.append(torch.multinomial(table[rows[-1]], 1).squeeze(1))
    return torch.stack(rows, 1)


class Adapted(nn.Module):
    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(letters, 48)
        self.wide, self.narrow = nn.Linear(48, 128), nn.Linear(128, 48)
        self.head = nn.Linear(48, letters)

    def forward(self, x):
        hidden = self.words(x)
        return self.head(hidden + self.narrow(torch.relu(self.wide(hidden))))


def train(model, optimizer, table, steps):
    for step in range(steps):
        rows = text(table, 32)
        logits = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, letters), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")


model = Model()
train(model, torch.optim.AdamW(model.parameters(), lr=3e-3), chain, 150)
for parameter in model.parameters():
    parameter.requires_grad = False
model.wide, model.narrow, model.head = (
    Adapted(model.wide),
    Adapted(model.narrow),
    Adapted(model.head, 8),
)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
train(model, optimizer, other, 200)
