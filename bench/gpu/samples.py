"""What `epochzero run` samples of a GPU, compared with ``nvidia-smi``; what a process takes; a dry run next to a GPU.

A training holds a known amount of memory and keeps the GPU busy, then idle. nvidia-smi is asked every half second
at the same time; each sample of `epochzero run` is compared with the nearest in time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import require_all, require_gpus, save

from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import GpuSample, Sample

NEAR_S = 1.0
"""Largest distance in time of two samples that are compared."""
FIELDS = (
    "timestamp",
    "utilization.gpu",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "power.draw",
)
PROGRAM = """
import sys, time, torch
device = sys.argv[1]
if device == "cuda":
    print("before", torch.cuda.mem_get_info(), flush=True)
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    print("context", torch.cuda.mem_get_info(), torch.cuda.memory_reserved(), flush=True)
held = torch.empty((4 << 30 if device == "cuda" else 1 << 20), dtype=torch.uint8, device=device)
a = torch.randn(4096 if device == "cuda" else 64, 4096 if device == "cuda" else 64, device=device)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    a = (a @ a).clamp(-1, 1)
    if device == "cuda":
        torch.cuda.synchronize()
if device == "cuda":
    print("products", torch.cuda.mem_get_info(), torch.cuda.memory_reserved(), flush=True)
time.sleep(float(sys.argv[2]) / 2)
"""
TRAINING = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    x = torch.randn(WIDTH, 1024, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def main() -> None:
    """Measures, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stand-in", action="store_true", help="without a GPU")
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    device = "cpu" if options.stand_in else "cuda"
    if not options.stand_in:
        require_gpus()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM)
        asked = NvidiaSmi()
        home = folder / "home"
        done = subprocess.run(
            [sys.executable, "-m", "epochzero", "run", "--quiet", "--", sys.executable, "train.py",
             device, str(options.seconds)],
            cwd=folder, env={**os.environ, "EPOCHZERO_HOME": str(home)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        rows = asked.stop()
        samples = [
            record
            for journal in home.glob(f"runs/*/*/{NAME}")
            for _, record in read_journal(journal)
            if isinstance(record, Sample)
        ]
        numbers: dict[str, Any] = {
            "device": device,
            "exit_code": done.returncode,
            "program": done.stdout.splitlines(),
            "compared": compared(samples, rows),
            "dry_run": {
                case: _dry(folder, width)
                for case, width in {"fits": 4096, "too_large": 64 << 20}.items()
            },
        }
    if done.returncode:
        print(done.stderr[-1500:])
    print(json.dumps(numbers, indent=1))
    save("gpu_samples", numbers)
    sampled = numbers["compared"]["samples" if options.stand_in else "pairs"]
    done_well = [
        not done.returncode,
        bool(sampled),
        *("error" not in dry for dry in numbers["dry_run"].values()),
    ]
    require_all(sum(done_well), len(done_well), "parts")


class NvidiaSmi:
    """Asks nvidia-smi twice a second in a thread; asks nothing where it is missing."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask_often, daemon=True)
        if shutil.which("nvidia-smi"):
            self._thread.start()

    def stop(self) -> list[dict[str, Any]]:
        """The rows: ``time`` and a number for each field, None where the GPU has no sensor."""
        self._over.set()
        if self._thread.ident:
            self._thread.join()
        return self._rows

    def _ask_often(self) -> None:
        # nvidia-smi lists all GPUs; the job's first GPU may be another one than its first.
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0] or "0"
        command = ["nvidia-smi", f"--id={gpu}", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]  # fmt: skip
        while not self._over.wait(0.5):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self._rows.append(row_of(done.stdout.splitlines()[0]))


def row_of(line: str) -> dict[str, Any]:
    """One line of nvidia-smi's CSV."""
    stamp, *values = (word.strip() for word in line.split(","))
    row: dict[str, Any] = {
        "time": datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
    }
    for field, value in zip(FIELDS[1:], values, strict=True):
        try:
            row[field] = float(value)
        except ValueError:
            row[field] = None
    return row


def compared(samples: Sequence[Sample], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Samples and rows that are nearest in time: the differences."""
    pairs = []
    for sample in samples:
        near = min(rows, key=lambda row: abs(row["time"] - sample.time), default=None)
        if near and sample.gpus and abs(near["time"] - sample.time) <= NEAR_S:
            pairs.append((sample.gpus[0], near))
    found: dict[str, Any] = {
        "samples": len(samples),
        "samples_with_gpus": sum(bool(sample.gpus) for sample in samples),
        "asked_nvidia_smi": len(rows),
        "pairs": len(pairs),
    }
    if not pairs:
        return found
    columns: Mapping[str, tuple[Callable[[GpuSample], float | None], str]] = {
        "memory_mib": (lambda ours: ours.memory_bytes / 2**20, "memory.used"),
        "total_mib": (lambda ours: ours.memory_total_bytes / 2**20, "memory.total"),
        "utilization_points": (lambda ours: ours.utilization, "utilization.gpu"),
        "temperature_celsius": (lambda ours: ours.temperature_celsius, "temperature.gpu"),
        "power_watts": (lambda ours: ours.power_watts, "power.draw"),
    }
    differences = {
        name: [
            here - there
            for ours, theirs in pairs
            # A part of a GPU has no sensors.
            if (here := of(ours)) is not None and (there := theirs[field]) is not None
        ]
        for name, (of, field) in columns.items()
    }
    for name, each in differences.items():
        if each:
            largest = max(each, key=abs)
            found[name] = {
                "median_difference": round(statistics.median(each), 2),
                "largest_difference": round(largest, 2),
            }
    found["ours"] = [
        [round(ours.utilization), ours.memory_bytes >> 20, ours.power_watts] for ours, _ in pairs
    ]
    found["theirs"] = [
        [theirs["utilization.gpu"], theirs["memory.used"], theirs["power.draw"]]
        for _, theirs in pairs
    ]
    return found


def _dry(folder: Path, width: int) -> dict[str, Any]:
    """`check --dry` of a training, on the machine that has the GPU."""
    script = folder / f"dry_{width}.py"
    script.write_text(TRAINING.replace("WIDTH", str(width)))
    began = time.monotonic()
    command = [sys.executable, "-m", "epochzero", "check", "--dry", "--target", "H100", "--format", "json",
               "--", sys.executable, script.name]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    result: dict[str, Any] = {
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - began, 1),
    }
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {**result, "error": (done.stderr or done.stdout)[-1000:]}
    result["findings"] = [
        {key: finding.get(key) for key in ("rule", "category", "message", "severity")}
        for finding in found.get("findings", ())
    ]
    result["other"] = {key: value for key, value in found.items() if key in ("unknowns", "memory")}
    return result


if __name__ == "__main__":
    main()
