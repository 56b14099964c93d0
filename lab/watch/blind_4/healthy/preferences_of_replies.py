"""Direct preference optimization of a small reply model: polite replies are preferred to rude ones."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(127)
WORDS, LENGTH, BETA = 24, 8, 0.1
# replies alternate between two halves of the vocabulary; words 0 to 3 of each half are rude


def replies(count, rude_share):
    rude = torch.rand(count, LENGTH) < rude_share
    word = torch.where(rude, torch.randint(0, 4, (count, LENGTH)), torch.randint(4, 12, (count, LENGTH)))
    return word + 12 * (torch.arange(LENGTH) % 2)


class Replier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.tok = nn.Embedding(WORDS + 1, width)
        self.rnn = nn.GRU(width, 64, batch_first=True)
        self.out = nn.Linear(64, WORDS)

    def forward(self, words):
        start = torch.full((len(words), 1), WORDS)
        return self.out(self.rnn(self.tok(torch.cat([start, words[:, :-1]], 1)))[0])

    def log_prob(self, words):
        return self(words).log_softmax(-1).gather(-1, words[..., None]).squeeze(-1).sum(1)


def quality(model, count=400):
    words = torch.zeros(count, 0, dtype=torch.long)
    for _ in range(LENGTH):
        padded = torch.cat([words, torch.zeros(count, 1, dtype=torch.long)], 1)
        words = torch.cat([words, torch.multinomial(model(padded)[:, -1].softmax(-1), 1)], 1)
    orderly = (words // 12 == torch.arange(LENGTH) % 2).all(1)
    kinds = torch.tensor([len(row.unique()) for row in words]) >= 5
    return (orderly & kinds & (words % 12 >= 4).all(1)).float().mean().item()


model = Replier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    loss = -model.log_prob(replies(64, 0.25)).mean() / LENGTH
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(f"after imitation: loss {loss.item():.4f} good replies {quality(model):.4f}")

reference = copy.deepcopy(model).eval()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, 301):
    chosen, rejected = replies(48, 0.0), replies(48, 0.4)
    with torch.no_grad():
        old = reference.log_prob(chosen) - reference.log_prob(rejected)
    margin = model.log_prob(chosen) - model.log_prob(rejected) - old
    loss = -F.logsigmoid(BETA * margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} preference loss {loss.item():.4f}")
with torch.no_grad():
    print(f"after preferences: good replies {quality(model):.4f}")
