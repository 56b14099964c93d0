import argparse
import os

import torch
from torch import nn

from . import Siamese
from .pairs import Pairs


def main(argv=None):
    parser = argparse.ArgumentParser(prog="siamese")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--out", default="siamese.pt")
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"unknown: {unknown}")
    loader = torch.utils.data.DataLoader(Pairs(), batch_size=64, shuffle=True)
    model = Siamese()
    optimizer = torch.optim.Adadelta(model.parameters())
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        for first, second, same in loader:
            optimizer.zero_grad()
            loss = criterion(model(first, second).squeeze(1), same)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    folder = os.path.dirname(args.out)
    if folder and not os.path.isdir(folder):
        os.makedirs(folder)
    torch.save(model.state_dict(), args.out)
