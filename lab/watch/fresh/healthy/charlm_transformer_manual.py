"""A small causal Transformer on the text of Python's own help; nats per character on chapters not trained on.

Should reach: val nats per character below 2.6; the frequencies of the characters give about 3.2.
"""

import pydoc_data.topics

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)
torch.set_num_threads(1)

chapters = [pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics)]
text = "".join(chapters)[:240_000]
characters = sorted(set(text))
code = {c: i for i, c in enumerate(characters)}
data = torch.tensor([code[c] for c in text])
train, val = data[:200_000], data[200_000:]
CONTEXT, WIDTH = 48, 64


def windows(source, count):
    starts = torch.randint(len(source) - CONTEXT - 1, (count,))
    rows = starts[:, None] + torch.arange(CONTEXT + 1)
    chunk = source[rows]
    return chunk[:, :-1], chunk[:, 1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class CharTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(characters), WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(characters), bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.token(x) + self.position.weight[: x.shape[1]])))


model = CharTransformer()
STEPS, WARMUP = 350, 30
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min(1, (step + 1) / WARMUP) * max(0.05, 1 - step / STEPS)
)
for step in range(1, STEPS + 1):
    x, y = windows(train, 24)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            x, y = windows(val, 100)
            nats = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        model.train()
        print(f"step {step} loss {loss.item():.3f} val nats per character {nats:.3f}")
