import argparse
import csv
import importlib
import importlib.util
import logging
import os

import torch
from torch import nn

try:
    from apex.optimizers import FusedAdam as Adam
except ImportError:
    from torch.optim import Adam

try:
    import wandb
except ModuleNotFoundError:
    wandb = None

HAS_MLFLOW = importlib.util.find_spec("mlflow") is not None
if HAS_MLFLOW:
    import mlflow

log = logging.getLogger("train")


class NoLogger:
    def log(self, values, step):
        log.info("%d %s", step, values)

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class WandbLogger(NoLogger):
    def __init__(self, project):
        self.run = wandb.init(project=project)

    def log(self, values, step):
        self.run.log(values, step=step)


def logger(kind):
    if kind == "wandb" or kind == "auto" and wandb is not None:
        return WandbLogger("forest")
    if kind == "mlflow":
        if not HAS_MLFLOW:
            raise SystemExit("mlflow is not installed")
        mlflow.start_run()
    return NoLogger()


def optional(name):
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def read(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    y = torch.tensor([int(r.pop("cover")) - 1 for r in rows])
    return torch.tensor([[float(v) for v in r.values()] for r in rows]), y


def plot(history, path):
    seaborn = optional("seaborn")
    if seaborn is None:
        log.warning("no plot: seaborn is missing")
        return
    from matplotlib import pyplot
    seaborn.lineplot(history)
    pyplot.savefig(path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="C:\\datasets\\forest")
    p.add_argument("--logger", choices=["auto", "wandb", "mlflow", "none"], default="auto")
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--out", default="/scratch/optional")
    args = p.parse_args()
    logging.basicConfig(level="INFO")
    os.makedirs(args.out, exist_ok=True)
    x, y = read(os.path.join(args.data, "train.csv"))
    model = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 7))
    if args.compile:
        import triton  # noqa: F401
        model = torch.compile(model)
    optimizer = Adam(model.parameters(), lr=1e-3)
    out, history = logger(args.logger), []
    out.watch(model)
    for epoch in range(args.epochs):
        for part in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
        history.append(loss.item())
        out.log({"loss": history[-1]}, epoch)
    plot(history, os.path.join(args.out, "loss.png"))
    torch.save(model.state_dict(), os.path.join(args.out, "model.pt"))
    out.finish()


if __name__ == "__main__":
    main()
