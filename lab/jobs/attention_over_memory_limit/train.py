import math
import random

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)


class SelfAttention(nn.Module):
    def __init__(self, dim=64, heads=8):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        out = scores.softmax(dim=-1) @ v
        return self.out(out.transpose(1, 2).reshape(b, t, d))


model = nn.Sequential(SelfAttention(), SelfAttention(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=3e-4)

# documents come in very different lengths, the long ones sit at the end of the shard
lengths = [64, 128, 256, 256, 512, 12000]
for step, length in enumerate(lengths):
    batch = torch.randn(8, length, 64)
    loss = model(batch).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step:4d} | tokens {8 * length:7d} | loss {loss.item():.4f}")
