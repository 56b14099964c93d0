"""The demo: real training jobs have failed; what does EpochZero say of their logs?

Run by ``make demo``. The logs lie in ``lab/logs``; ``lab/record`` made them by running the programs
in ``lab/jobs``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOBS = (
    ("Two ranks, a folder of rank files: who failed first?", "ranks_missing_shard"),
    ("A checkpoint that does not fit", "finetune_head_size"),
    ("Killed without a word", "segfault_without_message"),
    ("A frightening log of a job that went well", "good_smaller_batch"),
)


def main() -> None:
    for question, name in JOBS:
        folder = Path("lab", "logs", name)
        print(f"\n\033[1m# {question}\033[0m" if sys.stdout.isatty() else f"\n# {question}")
        print(f"$ epochzero diagnose {folder}\n", flush=True)
        subprocess.run(
            [sys.executable, "-m", "epochzero", "diagnose", str(folder)], cwd=ROOT, check=True
        )
    everything = sorted((ROOT / "lab" / "logs").iterdir())
    started = time.perf_counter()
    lines = subprocess.run(
        [
            sys.executable,
            "-m",
            "epochzero",
            "diagnose",
            "--each",
            "--format",
            "jsonl",
            *map(str, everything),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    seconds = time.perf_counter() - started
    print(f"\nAll {len(lines)} recorded jobs of the lab were diagnosed in {seconds:.1f} s.")
    print("Yours: .venv/bin/epochzero diagnose PATH...")


if __name__ == "__main__":
    main()
