"""How many idioms of training scripts a dry run understands on a machine without a GPU.

Each is a script of its own, run as ``epochzero check --dry`` runs a job, contained, with a pretended A100
(``bench/dry_idioms.toml``). It passes when it comes to its end, or fails with the error that it should.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import save

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan, attempt
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.launch import read_job
from epochzero.check.target.gpus import presets

IDIOMS = Path(__file__).with_suffix(".toml")
GPU = presets()["A100 80GB"]
SECONDS = 60.0


def main() -> None:
    """Run all idioms and keep the result."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", default=sys.executable, help="that has torch")
    arguments.add_argument("--only", default="", help="those whose names contain this")
    options = arguments.parse_args()
    given = tomllib.loads(IDIOMS.read_text(encoding="utf-8"))
    idioms = {name: idiom for name, idiom in given["idiom"].items() if options.only in name}
    passed: dict[str, bool] = {}
    seconds: list[float] = []
    for name, idiom in idioms.items():
        run = ran(options.python, given["start"] + idiom["script"], "distributed" in idiom)
        passed[name] = passes(run, idiom.get("fails", ""))
        seconds.append(run.ended.seconds)
        if not passed[name]:
            print(f"{name}: {run.raised or run.ended.why}"[:300])
    print(f"{sum(passed.values())} of {len(passed)} pass")
    if not options.only:
        keep(passed, seconds)


def ran(python: str, script: str, distributed: bool) -> DryRunAttempt:
    """One run of one idiom."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(script, encoding="utf-8")
        launcher = ("-m", "torch.distributed.run", "--nproc_per_node", "8")
        command = (python, *(launcher if distributed else ()), "train.py")
        (job,) = read_job(command, Path(folder), dict(os.environ)).jobs
        plan = DryRunPlan("fake", (GPU,) * 8)
        return attempt(job, plan, Limits(seconds=SECONDS), dict(os.environ), lambda _: None)


def passes(run: DryRunAttempt, fails: str) -> bool:
    """Whether it came to its end, or failed as it would on the GPU."""
    if not fails:
        return run.ending == "finished" and not run.unfit
    return run.raised is not None and fails in run.raised.message


def keep(passed: Mapping[str, bool], seconds: Sequence[float]) -> None:
    """Write the result file."""
    numbers = {
        "idioms": len(passed),
        "passed": sum(passed.values()),
        "failed": [name for name, ok in passed.items() if not ok],
        "seconds": {"median": statistics.median(seconds), "longest": max(seconds)},
    }
    save("dry_idioms", numbers, data=[{"name": IDIOMS.name, "idioms": len(passed)}])


if __name__ == "__main__":
    main()
