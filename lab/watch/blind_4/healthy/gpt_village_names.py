"""Character-level language model of invented village notices; warm-up from zero, cosine decay, tied output weights."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(5)
torch.manual_seed(5)
BLOCK, BATCH, STEPS, WARMUP, PEAK = 48, 24, 260, 60, 4e-3

syllables = ["ka", "ro", "min", "tel", "su", "vo", "lan", "der", "pi", "os"]
goods = ["salt", "wool", "tin", "oats", "honey"]
lines = []
for _ in range(1500):
    place = "".join(random.choice(syllables) for _ in range(3))
    count = random.randrange(2, 10)
    lines.append(f"{place} sells {count} loads of {random.choice(goods)} to {place[::-1][:3]};\n")
text = "".join(lines)
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
cut = int(0.9 * len(data))
train_data, val_data = data[:cut], data[cut:]
rng = torch.Generator().manual_seed(1337)


def get_batch():
    starts = torch.randint(len(train_data) - BLOCK - 1, (BATCH,), generator=rng)
    x = torch.stack([train_data[s : s + BLOCK] for s in starts])
    y = torch.stack([train_data[s + 1 : s + BLOCK + 1] for s in starts])
    return x, y


class TinyGPT(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.tok = nn.Embedding(len(chars), width)
        self.pos = nn.Embedding(BLOCK, width)
        nn.init.normal_(self.tok.weight, std=0.05)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(chars), bias=False)
        self.head.weight = self.tok.weight

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(h, mask=mask, is_causal=True)))


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.95), weight_decay=0.1)


def rate(step):
    if step < WARMUP:
        return PEAK * step / WARMUP
    return PEAK * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))))


for step in range(STEPS):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    x, y = get_batch()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"iter {step}: loss {loss.item():.4f} lr {rate(step):.2e}")

model.eval()
with torch.no_grad():
    x = val_data[: len(val_data) // BLOCK * BLOCK].view(-1, BLOCK)[:120]
    held = F.cross_entropy(model(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten())
print(f"val loss {held.item():.4f}")
