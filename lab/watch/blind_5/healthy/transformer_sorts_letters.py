"""Sequence to sequence with nn.Transformer: letters of padded words in alphabetical order, decoded step by step."""

import random

import torch
from torch import nn

SEED = 28
random.seed(SEED)
torch.manual_seed(SEED)
PAD, START, END, FIRST, LETTERS, LONGEST = 0, 1, 2, 3, 8, 6


def words(count):
    source, target = torch.full((count, LONGEST + 1), PAD), torch.full((count, LONGEST + 2), PAD)
    for row in range(count):
        letters = [random.randrange(FIRST, FIRST + LETTERS) for _ in range(random.randrange(2, LONGEST + 1))]
        source[row, : len(letters)] = torch.tensor(letters)
        target[row, : len(letters) + 2] = torch.tensor([START, *sorted(letters), END])
    return source, target


class Sorter(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tokens, self.places = nn.Embedding(FIRST + LETTERS, width), nn.Embedding(LONGEST + 2, width)
        self.core = nn.Transformer(width, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, FIRST + LETTERS)

    def embed(self, ids):
        return self.tokens(ids) + self.places.weight[: ids.shape[1]]

    def forward(self, source, target):
        padding = source == PAD
        causal = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), 1)
        hidden = self.core(
            self.embed(source), self.embed(target), tgt_mask=causal,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )
        return self.head(hidden)


model = Sorter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(1, 601):
    source, target = words(64)
    loss = criterion(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")
model.eval()
source, target = words(300)
written = torch.full((300, 1), START)
with torch.no_grad():
    for _ in range(LONGEST + 1):
        written = torch.cat([written, model(source, written)[:, -1:].argmax(-1)], 1)
right = ((written == target) | (target == PAD)).all(1).float().mean()
print(f"words sorted {right:.4f}")
