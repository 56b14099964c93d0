import argparse
import importlib
import importlib.util
import json
import os
import sys

import torch

try:
    import wandb
except ImportError:
    wandb = None


class NoLogger:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class JsonLogger:
    def __init__(self, path):
        self.file = open(path, "a")

    def log(self, values, step):
        print(json.dumps({"step": step, **values}), file=self.file, flush=True)

    def close(self):
        self.file.close()


def make_logger(kind, folder):
    if kind == "wandb":
        if wandb is None:
            sys.exit("wandb is not installed")
        key = os.getenv("WANDB_API_KEY")
        if key:
            wandb.login(key=key)
        return wandb.init(project="lab", dir=folder)
    if kind == "tensorboard":
        if importlib.util.find_spec("tensorboard") is None:
            print("no tensorboard, going on without")
            return NoLogger()
        writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(folder)
        writer.log = lambda values, step: [writer.add_scalar(k, v, step) for k, v in values.items()]
        return writer
    if kind == "json":
        os.makedirs(folder, exist_ok=True)
        return JsonLogger(os.path.join(folder, "log.jsonl"))
    return NoLogger()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logger", default="json", choices=("none", "json", "tensorboard", "wandb"))
    parser.add_argument("--folder", default="runs")
    args = parser.parse_args()
    logger = make_logger(args.logger, args.folder)
    weight = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(100):
        x = torch.randn(16, 3)
        loss = ((x * weight).sum(1) - x.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.log({"loss": loss.item()}, step)
    logger.finish() if hasattr(logger, "finish") else logger.close()


if __name__ == "__main__":
    main()
