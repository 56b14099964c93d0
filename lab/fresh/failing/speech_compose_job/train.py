"""Keyword spotting with a depthwise-separable CNN."""
import argparse
import os

import numpy as np
import torch
from torch import nn

import publish

DATA = os.environ["SPEECH_DATA"]
OUT = os.environ.get("SPEECH_OUT", "./out")


def separable(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, a, 3, stride, 1, groups=a), nn.BatchNorm2d(a), nn.ReLU(),
                         nn.Conv2d(a, b, 1), nn.BatchNorm2d(b), nn.ReLU())


class Spotter(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.stem = nn.Conv2d(1, 32, (10, 4), (2, 2))
        self.blocks = nn.Sequential(*[separable(32, 32) for _ in range(4)])
        self.head = nn.Linear(32, words)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def batches(name, size, shuffle):
    with np.load(os.path.join(DATA, name + ".npz")) as f:
        x, y = torch.from_numpy(f["mfcc"]).float()[:, None], torch.from_numpy(f["word"]).long()
    order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
    for part in order.split(size):
        yield x[part], y[part]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--words", type=int, default=12)
    args = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    model = Spotter(args.words)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)
    best = -1.0
    for epoch in range(args.epochs):
        model.train()
        for x, y in batches("train", args.batch, True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            hits = [(model(x).argmax(1) == y).float() for x, y in batches("val", 512, False)]
        accuracy = torch.cat(hits).mean().item()
        print(epoch, accuracy, flush=True)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), os.path.join(OUT, "best.pt"))
    publish.publish(os.path.join(OUT, "best.pt"), accuracy=best)


if __name__ == "__main__":
    main()
