"""Trains a copy-translation toy and scores it."""

import argparse

import torch
from torch import nn

from translate.model import Seq2Seq
from translate.scoring import score


def pairs(count, length=12, vocabulary=100):
    source = torch.randint(3, vocabulary, (count, length))
    return source, source.flip(1)


def train(model, steps, batch_size):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        source, target = pairs(batch_size)
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step} loss {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    model = Seq2Seq(vocabulary=100, width=128)
    train(model, args.steps, args.batch_size)
    source, target = pairs(200)
    with torch.no_grad():
        predicted = model(source, target[:, :-1]).argmax(-1)
    print("BLEU", score(predicted.tolist(), target[:, 1:].tolist()))


if __name__ == "__main__":
    main()
