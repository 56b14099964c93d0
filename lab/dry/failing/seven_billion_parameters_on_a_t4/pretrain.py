"""Pretrains a decoder of any size on random tokens, to measure the throughput."""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.join = nn.Linear(width, width, bias=False)
        self.between = nn.RMSNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    def __init__(self, words, width, depth, heads):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.out = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.out(self.layers(self.words(tokens)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    with torch.device("cuda"):
        model = Decoder(32000, args.width, args.depth, args.width // 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    start = time.perf_counter()
    for step in range(args.steps):
        tokens = torch.randint(0, 32000, (args.batch, 513), device="cuda")
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: {loss.item():.3f} {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
