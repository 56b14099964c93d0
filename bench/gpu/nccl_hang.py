"""A real hang of NCCL on two GPUs, under `epochzero run`: the flight recorder's dump names the rank and the line.

Skipped with fewer than two GPUs. ``--stand-in`` runs the same program on two processes of
the CPU, which write no dump.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import require_all, require_gpus, save

from epochzero.run.observers.hangs import HANG_CODE

PROGRAM = """
import os
import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
cuda = torch.cuda.is_available()
if cuda:
    torch.cuda.set_device(rank)
dist.init_process_group("nccl" if cuda else "gloo")
x = torch.ones(1024, device="cuda" if cuda else "cpu")
for step in range(20):
    if step == 5 and rank == 1:
        continue  # One all-reduce too few.
    dist.all_reduce(x)
    if cuda:
        torch.cuda.synchronize()
    print(f"rank {rank} step {step}", flush=True)
dist.barrier()
"""


def main() -> None:
    """Runs the job, prints, and saves the result."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stand-in", action="store_true", help="without a GPU")
    stand_in = parser.parse_args().stand_in
    if not stand_in:
        require_gpus(2)
    numbers = {"gpus": torch.cuda.device_count(), **_hung()}
    print(json.dumps(numbers, indent=1))
    save("gpu_nccl_hang", numbers)
    require_all(numbers["exit_code"] == HANG_CODE, 1, "hangs")


def _hung() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="gpu-hang-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
        environment = {
            **os.environ,
            "EPOCHZERO_HOME": str(folder / "home"),
            "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        }
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "epochzero", "run", "--stall", "15", "--on-hang", "kill", "--", *launcher, "train.py"],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return {"exit_code": done.returncode, "screen": done.stderr[-4000:]}


if __name__ == "__main__":
    main()
