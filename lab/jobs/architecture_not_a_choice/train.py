#!/usr/bin/env python3
import argparse
import math

MODELS = {"resnet18": 18, "resnet34": 34, "resnet50": 50, "resnet101": 101}


def main():
    parser = argparse.ArgumentParser(prog="train.py")
    parser.add_argument("data", help="folder of the data set")
    parser.add_argument("-a", "--arch", choices=sorted(MODELS), default="resnet18")
    parser.add_argument("--epochs", default=90, type=int, metavar="N")
    parser.add_argument("-b", "--batch-size", default=256, type=int, metavar="N")
    parser.add_argument("--lr", default=0.1, type=float)
    args = parser.parse_args()
    for epoch in range(args.epochs):
        lr = args.lr * (1 + math.cos(math.pi * epoch / args.epochs)) / 2
        print(f"{args.arch} epoch {epoch} lr {lr:.4f}")


if __name__ == "__main__":
    main()
