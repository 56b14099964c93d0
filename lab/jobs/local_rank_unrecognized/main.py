import argparse
import warnings

import torch

warnings.warn("--local_rank will go, read LOCAL_RANK from the environment", FutureWarning)

parser = argparse.ArgumentParser(description="distributed training (single node)")
parser.add_argument("--local_rank", type=int, default=0)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch_size", type=int, default=8)
args = parser.parse_args()

model = torch.nn.Linear(4, 1)
for epoch in range(args.epochs):
    print(epoch, model(torch.randn(args.batch_size, 4)).mean().item())
