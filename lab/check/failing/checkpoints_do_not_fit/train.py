"""Language model; keeps a checkpoint of every epoch."""

import argparse
import os

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class LM(nn.Module):
    def __init__(self, vocabulary=50257, width=1024, depth=24, heads=16, context=1024):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        length = ids.size(1)
        mask = torch.triu(torch.full((length, length), float("-inf"), device=ids.device), 1)
        x = self.tokens(ids) + self.positions(torch.arange(length, device=ids.device))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def save(model, optimizer, epoch, folder):
    path = os.path.join(folder, f"epoch_{epoch:03d}.pt")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--save-dir", required=True)
    parser.add_argument("--steps-per-epoch", type=int, default=2000)
    args = parser.parse_args()
    os.makedirs(args.save_dir, exist_ok=True)
    model = LM().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(args.epochs):
        for _ in range(args.steps_per_epoch):
            ids = torch.randint(0, 50257, (8, 1025), device="cuda")
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
        save(model, optimizer, epoch, args.save_dir)


if __name__ == "__main__":
    main()
