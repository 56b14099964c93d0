"""A failing training on a GPU, captured and replayed: bit for bit with deterministic algorithms, or what is reported.

Three trainings of a small convolutional network whose loss stops being finite: with deterministic algorithms,
without, and with dropout drawn on the GPU. Each runs under `epochzero run --capture` and is replayed on the CPU and,
with ``--gpu``, on the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import require_all, require_gpus, save

PROGRAM = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "{device}"
{prelude}
torch.manual_seed(7)
images = torch.randn(512, 3, 32, 32)
labels = torch.randint(0, 10, (512,))
images[300] = float("inf")
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), {dropout}
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2, mode="{mode}"),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        loss = nn.functional.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            raise FloatingPointError("loss is not finite")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DETERMINISTIC = "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.benchmark = False\n"
CASES = {
    "deterministic": {"prelude": DETERMINISTIC, "dropout": "", "mode": "nearest"},
    "deterministic_dropout": {
        "prelude": DETERMINISTIC,
        "dropout": "nn.Dropout(0.3),",
        "mode": "nearest",
    },
    "not_deterministic": {"prelude": "", "dropout": "nn.Dropout(0.3),", "mode": "bicubic"},
}


def main() -> None:
    """Measures, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args()
    if options.device == "cuda":
        require_gpus()
    with ThreadPoolExecutor(len(CASES)) as pool:
        runs = {pool.submit(played, case, options.device): case for case in CASES}
        rows: dict[str, dict[str, Any]] = {}
        for run in as_completed(runs):
            rows[runs[run]] = run.result()
            save("gpu_replay", {"device": options.device, **rows})
    print(json.dumps(rows, indent=1))
    ways = [row[way] for row in rows.values() for way in ("cpu", "gpu") if way in row]
    require_all(sum("exactness" in way for way in ways), len(ways), "replays")


def played(case: str, device: str) -> dict[str, Any]:
    """One training, run and replayed."""
    with tempfile.TemporaryDirectory(prefix="gpu-replay-") as name:
        folder = Path(name)
        text = PROGRAM.format(device=device, **CASES[case])
        (folder / "train.py").write_text(text, encoding="utf-8")
        environment = {
            **os.environ,
            "EPOCHZERO_HOME": str(folder / "home"),
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        }
        epochzero = [sys.executable, "-m", "epochzero"]
        run = subprocess.run(
            [*epochzero, "run", "--capture", "--quiet", "--", sys.executable, "train.py"],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        result: dict[str, Any] = {"exit_code": run.returncode, "error": run.stderr[-300:]}
        ways = {"cpu": (), "gpu": ("--gpu", "--write")} if device == "cuda" else {"cpu": ()}
        for way, options in ways.items():
            began = time.monotonic()
            done = subprocess.run(
                [*epochzero, "replay", "last", "--format", "json", *options],
                cwd=folder, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            result[way] = {
                "exit_code": done.returncode,
                "seconds": round(time.monotonic() - began, 1),
            }
            try:
                shown = json.loads(done.stdout)
            except ValueError:
                result[way]["error"] = (done.stderr or done.stdout)[-1500:]
                continue
            names = (
                "reproduced",
                "exactness",
                "losses",
                "differences",
                "position",
                "largest_difference",
            )
            result[way] |= {name: shown[name] for name in names if name in shown}
        return result


if __name__ == "__main__":
    main()
