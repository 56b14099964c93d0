"""Quality of wine by ordinal regression."""
import argparse
import json
import logging
import subprocess
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

logger = logging.getLogger(__name__)


def revision():
    try:
        return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


class Ordinal(nn.Module):
    """One latent value and ordered thresholds."""

    def __init__(self, inputs, hidden, grades):
        super().__init__()
        sizes = [inputs, *hidden]
        self.body = nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.SELU())])
        self.value = nn.Linear(sizes[-1], 1, bias=False)
        self.first = nn.Parameter(torch.tensor(-2.0))
        self.gaps = nn.Parameter(torch.zeros(grades - 2))

    def forward(self, x):
        cuts = torch.cat([self.first[None], self.first + nn.functional.softplus(self.gaps).cumsum(0)])
        return cuts - self.value(self.body(x))


def loss_of(logits, grade):
    target = (grade[:, None] <= torch.arange(logits.shape[1])).float()
    return nn.functional.binary_cross_entropy_with_logits(logits, target)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--hidden", type=int, nargs="*", default=[32])
    p.add_argument("--epochs", type=int, default=300)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("-v", "--verbose", action="store_true")
    args = p.parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO)
    args.out.mkdir(parents=True, exist_ok=True)
    frame = pd.read_csv(args.data, sep=";")
    x = torch.tensor(frame.drop(columns="quality").to_numpy(np.float32))
    x = (x - x.mean(0)) / x.std(0)
    y = torch.tensor(frame["quality"].to_numpy()) - int(frame["quality"].min())
    test = torch.arange(len(x)) % 5 == 0
    model = Ordinal(x.shape[1], args.hidden, int(y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    began = datetime.now()
    for epoch in range(args.epochs):
        for part in torch.nonzero(~test)[:, 0].split(64):
            optimizer.zero_grad()
            loss = loss_of(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
        logger.debug("epoch %d %f", epoch, loss.item())
    with torch.no_grad():
        guess = (model(x[test]) < 0).sum(1)
    record = {
        "arguments": vars(args),
        "revision": revision(),
        "seconds": (datetime.now() - began).total_seconds(),
        "accuracy": (guess == y[test]).float().mean().item(),
        "off_by_one": ((guess - y[test]).abs() <= 1).float().mean().item(),
    }
    torch.save(model.state_dict(), args.out / "model.pt")
    (args.out / "record.json").write_text(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
