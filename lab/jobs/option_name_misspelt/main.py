import argparse
import atexit
import os
import shutil
import tempfile

import torch
from torch import nn

scratch = tempfile.mkdtemp(prefix="cache_")


@atexit.register
def cleanup():
    print("removing", os.path.basename(scratch)[:6] + "...")
    shutil.rmtree(scratch)
    os.rmdir(scratch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--train-batch-size", type=int, default=32)
    parser.add_argument("--eval-batch-size", type=int, default=64)
    args = parser.parse_args()

    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        x = torch.randn(args.train_batch_size, 8)
        loss = (model(x) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

    print("running evaluation")
    x = torch.randn(args.eval_batchsize, 8)
    print("eval loss", (model(x) - 1).pow(2).mean().item())


main()
