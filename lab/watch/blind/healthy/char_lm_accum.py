"""A one-block causal transformer on generated words, with gradient accumulation, warm-up and cosine decay."""

import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(37)
torch.manual_seed(37)
WORDS = ["alpha", "beta", "gamma", "delta", "kappa", "lambda", "sigma", "omega", "theta", "zeta"]
NEXT = {w: random.sample(WORDS, 2) for w in WORDS}


def corpus(n):
    word, out = "alpha", []
    while sum(map(len, out)) + len(out) < n:
        out.append(word)
        word = random.choice(NEXT[word])
    return " ".join(out)[:n]


text = corpus(40_000)
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
train_data, val_data = data[:36_000], data[36_000:]
BLOCK, MICRO, ACCUM, STEPS = 32, 4, 8, 220


def get_batch(source, size):
    at = torch.randint(len(source) - BLOCK - 1, (size,))
    x = torch.stack([source[i:i + BLOCK] for i in at])
    y = torch.stack([source[i + 1:i + BLOCK + 1] for i in at])
    return x, y


class TinyGPT(nn.Module):
    def __init__(self, vocab, dim=64, heads=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(BLOCK, dim)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx):
        t = idx.shape[1]
        x = self.tok(idx) + self.pos(torch.arange(t))
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return self.head(x + self.mlp(self.ln2(x)))


def lr_at(step, peak=1e-2, warmup=30):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (STEPS - warmup)))


model = TinyGPT(len(chars))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for step in range(STEPS):
    for group in opt.param_groups:
        group["lr"] = lr_at(step)
    opt.zero_grad(set_to_none=True)
    for micro in range(ACCUM):
        x, y = get_batch(train_data, MICRO)
        loss = F.cross_entropy(model(x).transpose(1, 2), y) / ACCUM
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            x, y = get_batch(val_data, 64)
            acc = (model(x).argmax(-1) == y).float().mean().item()
        model.train()
        print(f"step {step + 1} loss {loss.item() * ACCUM:.4f} next-char acc {acc:.4f}")
