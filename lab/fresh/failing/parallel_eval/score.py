"""Accuracy of saved weights on one device."""

import argparse

import torch

from net import Net, stripes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    model = Net()
    model.load_state_dict(torch.load(args.weights, map_location="cpu"))
    model.eval()
    torch.manual_seed(99)
    x, y = stripes(args.count)
    with torch.inference_mode():
        right = (model(x).argmax(1) == y).sum().item()
    print(f"{right} of {args.count}")


if __name__ == "__main__":
    main()
