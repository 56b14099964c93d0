"""Depth of brackets, short strings first: with each longer stage the loss jumps up."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(109)
DEEPEST = 5


def strings(count, length):
    step = torch.where(torch.rand(count, length) < 0.5, 1, -1)
    depth, depths, tokens = torch.zeros(count, dtype=torch.long), [], []
    for k in range(length):
        move = torch.where(depth == 0, 1, torch.where(depth == DEEPEST, -1, step[:, k]))
        depth = depth + move
        tokens.append((move < 0).long())
        depths.append(depth)
    return torch.stack(tokens, 1), torch.stack(depths, 1)


class Counter(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.tok = nn.Embedding(2, 8)
        self.rnn = nn.GRU(8, hidden, batch_first=True)
        self.out = nn.Linear(hidden, DEEPEST + 1)

    def forward(self, tokens):
        return self.out(self.rnn(self.tok(tokens))[0])


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for length in (2, 4, 8, 16, 24):
    for step in range(80):
        tokens, depths = strings(32, length)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), depths.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step in (0, 79):
            print(f"length {length} step {step} loss {loss.item():.4f}")

with torch.no_grad():
    tokens, depths = strings(200, 24)
    print(f"accuracy at length 24: {(model(tokens).argmax(-1) == depths).float().mean().item():.4f}")
