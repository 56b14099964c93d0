"""A frozen sequence model is steered by eight trained vectors in front of its input and a new head."""

import torch
from torch import nn

torch.manual_seed(16)
torch.set_num_threads(1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 32)
        self.prompt = nn.Parameter(torch.randn(8, 32) * 0.02)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens):
        x = torch.cat([self.prompt.expand(len(tokens), -1, -1), self.words(tokens)], 1)
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return self.head(x.mean(1))


def texts(count, word):
    tokens = torch.randint(40, (count, 10))
    return tokens, ((tokens == word) | (tokens == word + 1) | (tokens == word + 2)).any(1).long()


def fit(parameters, rate, word, steps):
    optimizer = torch.optim.Adam(parameters, lr=rate)
    xv, yv = texts(600, word)
    for step in range(1, steps + 1):
        x, y = texts(64, word)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            with torch.no_grad():
                print(f"step {step} val accuracy {(model(xv).argmax(1) == yv).float().mean():.4f}")


model = Reader()
fit(list(model.parameters()), 3e-3, 3, 200)
model.requires_grad_(False)
model.head = nn.Linear(32, 2)
model.prompt.requires_grad_(True)
fit([model.prompt, *model.head.parameters()], 1e-2, 20, 400)
