"""What may be there and may not."""

import importlib.util
import logging

log = logging.getLogger(__name__)

try:
    from apex.optimizers import FusedAdam
except ImportError:
    FusedAdam = None

try:
    import wandb
except ModuleNotFoundError:
    wandb = None

HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None

try:
    import ujson as json
except ImportError:
    import json

try:
    from tqdm.rich import tqdm
except Exception:  # rich bars are experimental

    def tqdm(iterable, **_):
        return iterable


def optimizer(parameters, lr):
    if FusedAdam is not None:
        return FusedAdam(parameters, lr=lr)
    import torch

    return torch.optim.Adam(parameters, lr=lr)


class Tracker:
    def __init__(self, name):
        self.run = wandb.init(project="optional", name=name) if wandb else None
        self.writer = None
        if HAS_TENSORBOARD:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(f"runs/{name}")

    def log(self, step, **values):
        if self.run is not None:
            wandb.log(values, step=step)
        if self.writer is not None:
            for key, value in values.items():
                self.writer.add_scalar(key, value, step)
        log.info("%d %s", step, json.dumps(values))

    def close(self):
        for part in (self.run, self.writer):
            if part is not None:
                getattr(part, "finish", getattr(part, "close", lambda: None))()
