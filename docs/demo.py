"""The demo: jobs that will fail, before they run; and logs of real jobs that have failed.

Run by ``make demo``. The jobs to check lie in ``lab/check``, the logs in ``lab/logs``; ``lab/record`` made them by running the programs
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


CHECKED = Path("lab", "check", "failing", "test_split_was_not_uploaded")
TARGET = Path("lab", "check", "targets", "h100-pod.toml")


def main() -> None:
    command = (ROOT / CHECKED / "command").read_text(encoding="utf-8").split()
    options = ["check", "--target", str(TARGET), "--chdir", str(CHECKED), "--", *command]
    _show("Will this job fail on that platform?", options, fails=True)
    for question, name in JOBS:
        _show(question, ["diagnose", str(Path("lab", "logs", name))])
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
    print("Yours: .venv/bin/epochzero check -- COMMAND, .venv/bin/epochzero diagnose PATH...")


def _show(question: str, options: list[str], *, fails: bool = False) -> None:
    """Runs a command as a user would."""
    print(f"\n\033[1m# {question}\033[0m" if sys.stdout.isatty() else f"\n# {question}")
    print(f"$ epochzero {' '.join(options)}\n", flush=True)
    done = subprocess.run([sys.executable, "-m", "epochzero", *options], cwd=ROOT, check=False)
    if done.returncode != fails:
        sys.exit(f"the demo went wrong: exit code {done.returncode}")


if __name__ == "__main__":
    main()
