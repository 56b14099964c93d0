"""A GPT in half precision, as in the papers about its memory: dropout, and attention that keeps its scores."""

import argparse
import math

import torch
from torch import nn

p = argparse.ArgumentParser()
for name, value in {"h": 512, "a": 8, "s": 256, "b": 2, "layers": 4, "v": 8000}.items():
    p.add_argument(f"--{name}", type=int, default=value)
o = p.parse_args()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(o.h, 3 * o.h)
        self.c_proj = nn.Linear(o.h, o.h)
        self.attn_drop, self.drop = nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, o.a, h // o.a).transpose(1, 2) for t in self.c_attn(x).split(h, 2))
        w = (q @ k.transpose(-1, -2)).mul_(1 / math.sqrt(h // o.a))
        w = self.attn_drop(torch.softmax(w, -1))
        y = (w @ v).transpose(1, 2).reshape(b, s, h)
        return self.drop(self.c_proj(y))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj, self.drop = (
            nn.Linear(o.h, 4 * o.h),
            nn.Linear(4 * o.h, o.h),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        return self.drop(self.c_proj(torch.nn.functional.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = (
            nn.LayerNorm(o.h),
            Attention(),
            nn.LayerNorm(o.h),
            MLP(),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(o.v, o.h), nn.Embedding(o.s, o.h)
        self.h = nn.ModuleList(Block() for _ in range(o.layers))
        self.ln_f, self.head = nn.LayerNorm(o.h), nn.Linear(o.h, o.v, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


model = GPT().to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(10):
    idx = torch.randint(o.v, (o.b, o.s), device="cuda")
    loss = nn.functional.cross_entropy(model(idx).flatten(0, 1), idx.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
