"""Masked modelling of rows of numbers with constant differences; only a fifth of the positions count in the loss."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(59)
MODULUS, LENGTH, MASK = 11, 10, 11


def rows(count):
    start = torch.randint(0, MODULUS, (count, 1))
    difference = torch.randint(1, 4, (count, 1))
    return (start + difference * torch.arange(LENGTH)) % MODULUS


def mask_rows(tokens):
    hidden = torch.rand(tokens.shape) < 0.2
    hidden[:, 0] |= ~hidden.any(1)
    labels = tokens.masked_fill(~hidden, -100)
    return tokens.masked_fill(hidden, MASK), labels


class Reader(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tok = nn.Embedding(MODULUS + 1, width)
        self.pos = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, MODULUS)

    def forward(self, tokens):
        return self.out(self.body(self.tok(tokens) + self.pos(torch.arange(LENGTH))))


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(1, 501):
    tokens, labels = mask_rows(rows(64))
    loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    truth = rows(500)
    place = torch.randint(0, LENGTH, (500,))
    asked = truth.clone()
    asked[torch.arange(500), place] = MASK
    guess = model(asked).argmax(-1)[torch.arange(500), place]
print(f"fill-in accuracy {(guess == truth[torch.arange(500), place]).float().mean().item():.4f}")
