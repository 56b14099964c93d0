"""A decoder-only transformer learns to write a list of numbers in order after a separator; only the answer counts in the loss."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

cfg = SimpleNamespace(length=6, vocab=11, dim=48, heads=4, layers=2, batch=64, steps=420, lr=3e-3, sep=10)
cfg.block = 2 * cfg.length


def get_batch(n):
    numbers = torch.randint(0, 10, (n, cfg.length))
    separator = torch.full((n, 1), cfg.sep)
    tokens = torch.cat([numbers, separator, numbers.sort(1).values], 1)
    x, y = tokens[:, :-1], tokens[:, 1:].clone()
    y[:, : cfg.length] = -100
    return x, y


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.register_buffer("mask", torch.tril(torch.ones(cfg.block, cfg.block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (z.view(B, T, cfg.heads, C // cfg.heads).transpose(1, 2) for z in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(~self.mask[:T, :T], float("-inf")).softmax(-1)
        out = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(out)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Embedding(128, cfg.dim)
        self.blocks = nn.ModuleList(Block() for _ in range(cfg.layers))
        self.ln = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, idx, targets=None):
        positions = torch.arange(idx.size(1), device=idx.device)
        x = self.tok(idx) + self.pos(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)

    @torch.no_grad()
    def generate(self, idx, count):
        for _ in range(count):
            logits, _ = self(idx)
            idx = torch.cat([idx, logits[:, -1].argmax(-1, keepdim=True)], 1)
        return idx


torch.manual_seed(2)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, total_steps=cfg.steps, pct_start=0.1)
for it in range(cfg.steps):
    model.train()
    _, loss = model(*get_batch(cfg.batch))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if it % 60 == 59:
        model.eval()
        numbers = torch.randint(0, 10, (256, cfg.length))
        prompt = torch.cat([numbers, torch.full((256, 1), cfg.sep)], 1)
        answer = model.generate(prompt, cfg.length)[:, -cfg.length :]
        right = (answer == numbers.sort(1).values).all(1).float().mean()
        print(f"iter {it + 1}: loss {loss.item():.4f}, sorted {right.item():.3f}")
