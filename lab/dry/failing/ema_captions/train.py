import argparse
import copy
import os

import torch
from torch import nn


class Captioner(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.image = nn.Linear(64, width)
        self.embed = nn.Embedding(words, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, image, words):
        state = torch.tanh(self.image(image))[None]
        return self.out(self.cell(self.embed(words), state)[0])


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=50)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--decay", type=float, default=0.99)
    parser.add_argument("--work-dir", default="work")
    return parser.parse_args()


def update(average, model, decay):
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 1 - decay)


def main():
    args = parse()
    os.makedirs(args.work_dir, exist_ok=True)
    torch.manual_seed(0)
    model = Captioner(args.words, args.width)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    best = float("inf")
    path = os.path.join(args.work_dir, "best.pt")
    for epoch in range(args.epochs):
        for _ in range(20):
            image, words = torch.randn(16, 64), torch.randint(0, args.words, (16, 9))
            logits = model(image, words[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update(average, model, args.decay)
        if loss.item() < best:
            best = loss.item()
            torch.save({"ema": average.state_dict(), "args": args, "epoch": epoch}, path)
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["ema"])
    print("best epoch", checkpoint["epoch"], "of", checkpoint["args"].epochs)


if __name__ == "__main__":
    main()
