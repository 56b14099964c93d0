import argparse

import torch

from losses import focal_loss

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5)
for step in range(parser.parse_args().steps):
    logits, target = torch.randn(8, 2), torch.randint(2, (8,))
    print(step, focal_loss(logits, target).item())
