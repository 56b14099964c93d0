import argparse
import time

import torch
import yaml
from torch import nn

from blocks import Mixer

CONFIG = "configs/base.yaml"


def load_config():
    with open(CONFIG) as stream:
        return yaml.safe_load(stream)


def batches(size, width, steps):
    for _ in range(steps):
        inputs = torch.randn(size, 32, width)
        yield inputs, inputs.roll(1, dims=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-name", default="debug")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    config = load_config()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Mixer(config["width"], config["depth"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    started = time.time()
    stream = batches(config["batch_size"], config["width"], args.steps)
    for step, (inputs, targets) in enumerate(stream):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            rate = (step + 1) / (time.time() - started)
            print(f"{args.run_name} step {step} loss {loss.item():.4f} {rate:.1f}/s")
    print("done")


if __name__ == "__main__":
    main()
