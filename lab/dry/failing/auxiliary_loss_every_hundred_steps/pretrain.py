"""Pretrains a small encoder; now and then a sentence-order head is trained too."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, LENGTH = 500, 64, 32


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.language = nn.Linear(WIDTH, VOCABULARY)
        self.order = nn.Linear(2 * WIDTH, 2)

    def forward(self, tokens):
        return self.layers(self.embedding(tokens))

    def order_loss(self, hidden, swapped):
        pooled = hidden.mean(dim=1)
        return F.cross_entropy(self.order(pooled), swapped)


def batch(size=16):
    tokens = torch.randint(0, VOCABULARY, (size, LENGTH))
    swapped = torch.randint(0, 2, (size,))
    return tokens, swapped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--order-every", type=int, default=100)
    args = parser.parse_args()
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(1, args.steps + 1):
        tokens, swapped = batch()
        hidden = model(tokens)
        loss = F.cross_entropy(model.language(hidden).flatten(0, 1), tokens.flatten())
        if step % args.order_every == 0:
            loss = loss + model.order_loss(hidden, swapped)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
