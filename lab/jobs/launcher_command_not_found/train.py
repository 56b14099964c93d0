import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
for epoch in range(parser.parse_args().epochs):
    print(epoch, torch.rand(1).item())
