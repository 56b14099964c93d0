"""The epochs exceed the time limit, if the duration of an epoch is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.rule import Claim, Claims, JobView, Program, Rule
from epochzero.check.rules.world import TIME_OPTIONS, constant, given, in_hours, said_at
from epochzero.file_access import open_file

SURELY = 1.5
"""Factor between the expected time and the limit from which the job certainly does not finish."""
LARGEST_BYTES = 1 << 20
_EPOCHS = ("num_train_epochs", "max_epochs", "num_epochs", "n_epochs", "epochs")
_ENDS_OTHERWISE = (
    "max_steps",
    "max_train_steps",
    "max_time",
    "resume",
    "resume_from",
    "resume_from_checkpoint",
    "ckpt_path",
    "start_epoch",
)
_RESULTS = ("train_results.json", "all_results.json")
"""File that transformers' ``Trainer.save_metrics`` writes into the output directory."""
_GOES_ON = ("sbatch --requeue", "sbatch --signal", "sbatch --array", "sbatch --dependency")


@dataclass(frozen=True, slots=True)
class _Rate:
    """The duration of an epoch, its source, and whether it was measured for this job on this platform."""

    seconds: float
    source: str
    sure: bool


def _check(view: JobView) -> Claims:
    job = view.job
    limits = [
        one for one in (job.allocation.time_limit_s, view.target.time_limit_s) if one is not None
    ]
    epochs, rate = _epochs(view.program), _rate(view.program)
    if not limits or epochs is None or rate is None:
        return
    needed, limit = epochs * rate.seconds, min(limits)
    if needed <= limit:
        return
    is_certain = (
        rate.sure and needed >= SURELY * limit and job.argument_sources.keys().isdisjoint(_GOES_ON)
    )
    yield Claim(
        severity="error" if is_certain else "warning",
        phase="training",
        place=said_at(job, *TIME_OPTIONS),
        message=f"{epochs:g} epochs of {rate.seconds:.4g} s each, as {rate.source}, take "
        f"{in_hours(needed)}, but the time limit of the job is {in_hours(limit)}.",
        consequence="The scheduler ends the job at its time limit, in epoch "
        f"{int(limit / rate.seconds) + 1}",
        fix=f"Request {in_hours(needed * 1.1)}, train {int(limit / rate.seconds)} epochs, or save "
        "checkpoints from which a next job resumes.",
    )


def _epochs(program: Program) -> float | None:
    """The number of epochs; None if it is unknown, or if something else ends the training."""
    ends = (constant(given(program, name)) for name in _ENDS_OTHERWISE)
    if any(one not in (None, False, "", 0, -1) for one in ends):
        return None
    values = [constant(given(program, name)) for name in _EPOCHS]
    for call in program.calls:
        if call.name.rpartition(".")[2] in ("Trainer", "TrainingArguments", "fit"):
            values += [constant(call.keywords.get(name)) for name in _EPOCHS]
    return next(
        (float(value) for value in values if isinstance(value, int | float) and value > 0), None
    )


def _rate(program: Program) -> _Rate | None:
    if program.job.seconds_per_epoch is not None:
        return _Rate(program.job.seconds_per_epoch, "set in the settings", sure=True)
    folders = [constant(given(program, "output_dir"))]
    folders += [
        constant(c.keywords.get("output_dir")) for c in program.calls if "output_dir" in c.keywords
    ]
    for folder in folders:
        for name in _RESULTS if isinstance(folder, str) else ():
            seconds = _of_earlier(program.job.folder / str(folder) / name)
            if seconds is not None:
                return _Rate(seconds, f"measured in an earlier run by {folder}/{name}", sure=False)
    return None


def _of_earlier(file: Path) -> float | None:
    """Seconds per epoch of the run that wrote the file; None if the file does not contain them."""
    try:
        with open_file(file) as stream:
            data = stream.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            return None
        metrics = json.loads(data)
        seconds = float(metrics["train_runtime"]) / float(metrics["epoch"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError):
        return None
    return seconds if seconds > 0 else None


RULE = Rule(
    title="The epochs take longer than the time limit of the job",
    category="interrupted",
    why="A time limit is set once, but the number of epochs changes. The scheduler ends the job "
    "at its limit, and everything since the last checkpoint is lost.",
    fix="Request more time, train fewer epochs, or resume from checkpoints in a next job.",
    source="sbatch(1), --time; Zhang et al., ICSE 2020, section 3.2: jobs that are ended by the platform",
    check=_check,
    examples="""
        $ sbatch run.sh
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--epochs', type=int, default=20)
        p.add_argument('--resume', default='')
        args = p.parse_args()
        for epoch in range(args.epochs):
            print(epoch)
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --time=12:00:00  # <-
        python train.py
        ==> pyproject.toml <==
        [tool.epochzero.check]
        seconds-per-epoch = 3600
        ---- caught if
        -#SBATCH --time=12:00:00  # <-
        -python train.py
        +#SBATCH --time=16:00:00  # <-
        +python train.py --epochs 17
        ---- ignored if
        -#SBATCH --time=12:00:00
        +#SBATCH --time=1-00:00:00
        ---- ignored if
        -python train.py
        +python train.py --epochs 10
        ---- ignored if
        -[tool.epochzero.check]
        -seconds-per-epoch = 3600
        ---- ignored if
        -python train.py
        +python train.py --resume last.pt
        ----
        $ python train.py  # <-
        import argparse

        p = argparse.ArgumentParser()
        p.add_argument('--epochs', type=int, default=20)
        p.add_argument('--resume', default='')
        args = p.parse_args()
        for epoch in range(args.epochs):
            print(epoch)
        ==> pyproject.toml <==
        [tool.epochzero.check]
        seconds-per-epoch = 3600
        ==> target.toml <==
        time_limit_s = 36000
        ----
        $ sbatch run.sh
        from transformers import Trainer, TrainingArguments

        arguments = TrainingArguments(output_dir='out', num_train_epochs=10)
        Trainer(args=arguments).train()
        ==> out/train_results.json <==
        {"epoch": 3.0, "train_runtime": 21600.0}
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --time=24:00:00
        python train.py
        ---- caught if
        -#SBATCH --time=24:00:00
        +#SBATCH --time=10:00:00  # <-
        ---- ignored if
        -{"epoch": 3.0, "train_runtime": 21600.0}
        +{}
        @@
        -#SBATCH --time=24:00:00
        +#SBATCH --time=1:00:00
    """,
)
