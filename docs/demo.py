"""The demo: a job that will fail, before it runs; one that runs and fails; logs of others that failed.

Run by ``make demo``. The job to check lies in ``lab/check``, the one that runs in ``lab/demo``, the logs
in ``lab/logs``; ``lab/record`` made these by running the programs in ``lab/jobs``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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
    _run()
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
    yours = ("check -- COMMAND", "run -- COMMAND", "diagnose PATH...")
    print("Yours: " + ", ".join(f".venv/bin/epochzero {one}" for one in yours))


def _run() -> None:
    """A real training program that fails at the end of its evaluation, and what is kept of it."""
    with tempfile.TemporaryDirectory() as scratch:
        job = Path(scratch) / "job"
        shutil.copytree(ROOT / "lab" / "demo", job)
        kept = {"cwd": job, "home": Path(scratch) / "home"}
        what = "A training program runs, and fails at its end: why, where, what did it cost?"
        _show(what, ["run", "--gpus", "8", "--", sys.executable, "train.py"], fails=True, **kept)
        _show("Which jobs were run?", ["jobs"], **kept)


def _show(
    question: str,
    options: list[str],
    *,
    fails: bool = False,
    cwd: Path = ROOT,
    home: Path | None = None,
) -> None:
    """Runs a command as a user would."""
    print(f"\n\033[1m# {question}\033[0m" if sys.stdout.isatty() else f"\n# {question}")
    shown = " ".join("python" if word == sys.executable else word for word in options)
    print(f"$ epochzero {shown}\n", flush=True)
    environment = {**os.environ, "EPOCHZERO_HOME": str(home)} if home else None
    command = [sys.executable, "-m", "epochzero", *options]
    done = subprocess.run(command, cwd=cwd, env=environment, check=False)
    if done.returncode != fails:
        sys.exit(f"the demo went wrong: exit code {done.returncode}")


if __name__ == "__main__":
    main()
