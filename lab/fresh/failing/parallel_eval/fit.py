"""Training over all GPUs of the machine."""

import argparse

import torch
from torch import nn

from net import Net, stripes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.DataParallel(Net()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [10, 15])
    for epoch in range(args.epochs):
        model.train()
        for _ in range(10):
            x, y = stripes(args.batch)
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        print(epoch, f"{loss.item():.4f}")
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
