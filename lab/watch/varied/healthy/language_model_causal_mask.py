"""A small decoder with its own masked softmax and a head tied to the table of words."""

import math

import torch
from torch import nn

torch.manual_seed(19)
torch.set_num_threads(1)
SYMBOLS, LENGTH, WIDTH = 24, 24, 48
jump = torch.randperm(SYMBOLS)


def lines(count):
    rows = [torch.randint(SYMBOLS, (count,))]
    for _ in range(LENGTH):
        follow = jump[rows[-1]]
        rows.append(torch.where(torch.rand(count) < 0.9, follow, torch.randint(SYMBOLS, (count,))))
    return torch.stack(rows, 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.softmax = nn.Softmax(dim=-1)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)))

    def forward(self, x):
        q, k, v = (part.unflatten(2, (4, -1)).transpose(1, 2) for part in self.attend(self.one(x)).split(WIDTH, 2))
        scores = (q @ k.transpose(2, 3) / math.sqrt(WIDTH / 4)).masked_fill(self.mask == 0, float("-inf"))
        x = x + self.project((self.softmax(scores) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.two(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS, bias=False)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 40))
for step in range(1, 201):
    text = lines(16)
    loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            text = lines(64)
            val = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        model.train()
        print(f"step {step} val loss {val:.4f}")
