"""A tiny character transformer that accumulates gradients over four batches."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)
words = ["river", "stone", "cloud", "amber", "north", "lantern", "meadow", "copper"]
order = torch.randint(len(words), (1500,)).tolist()
text = " ".join(words[number] for number in order)
alphabet = sorted(set(text))
data = torch.tensor([alphabet.index(letter) for letter in text])
block, batch_size, accumulate = 24, 8, 4


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
        x = x + self.out(weights @ v)
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(block, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for layer in self.blocks:
            x = layer(x)
        return self.head(x)


def batch():
    start = torch.randint(len(data) - block - 1, (batch_size,))
    x = torch.stack([data[i : i + block] for i in start])
    y = torch.stack([data[i + 1 : i + block + 1] for i in start])
    return x, y


model = CharModel(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
for step in range(640):
    x, y = batch()
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    (loss / accumulate).backward()
    if (step + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
    if step % 80 == 79:
        print(f"step {step} loss {loss.item():.3f}")
