"""One run of the child: what it is given, and what it told."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from epochzero.check.dryrun.contain.model import Ended, Limits
from epochzero.check.dryrun.model import Ending, Mode, ProvidedFiles
from epochzero.check.dryrun.process import RECORDS_DESCRIPTOR, SPEC_DESCRIPTOR, run_contained
from epochzero.check.dryrun.records import Ended as Finished
from epochzero.check.dryrun.records import Raised, Record, Resumed, Unfit, read
from epochzero.check.job.model import Job
from epochzero.check.target.model import GPU

CHILD = Path(__file__).parent / "child" / "__main__.py"
_LAUNCHED = {
    "GROUP_RANK": "0",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29511",
    "NODE_RANK": "0",
    "RANK": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_RUN_ID": "dry",
}
"""What a launcher sets for the first of a job's processes."""
_ALONE = {"LOCAL_WORLD_SIZE": "1", "SLURM_NTASKS": "1", "WORLD_SIZE": "1"}
"""What it sets besides for the only one."""

Hear: TypeAlias = Callable[[Record], object]
_Kind = TypeVar("_Kind", bound=Record)


@dataclass(frozen=True, slots=True)
class DryRunPlan:
    """How the child runs a job.

    Attributes:
        mode: with true values on the CPU, or with the shapes that the GPUs would see.
        gpus: that the job sees; none where it asks for none.
        devices: that it sees in JAX, all of them this machine's CPU.
        whole: loops are not shortened.
        often: how often a loop that is shortened sees the same before it jumps ahead.
        batch: samples of a batch at most; 0 for as many as the job asks for.
        resume: what was saved is given to the script once more.
        made: data that are put where the job looks for its own.
    """

    mode: Mode
    gpus: Sequence[GPU] = ()
    devices: int = 1
    whole: bool = False
    often: int = 1
    batch: int = 0
    resume: bool = True
    made: Sequence[ProvidedFiles] = ()


@dataclass(frozen=True, slots=True)
class DryRunAttempt:
    """One run of the child, with what it told."""

    plan: DryRunPlan
    ended: Ended
    records: tuple[Record, ...]

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """The records of a kind."""
        return [one for one in self.records if isinstance(one, kind)]

    @property
    def resumed(self) -> Resumed | None:
        """That the script came to its end, and was begun once more with what it saved."""
        return next(iter(self.of(Resumed)), None)

    @property
    def raised(self) -> Raised | None:
        """The error that ended the script."""
        return next(reversed(self.of(Raised)), None)

    @property
    def unfit(self) -> Unfit | None:
        """Why the GPUs could not be pretended."""
        return next(iter(self.of(Unfit)), None)

    @property
    def ended_itself(self) -> bool:
        """Whether the process ended without an end of the script that Python knows."""
        told = self.of(Finished) or self.raised or self.unfit
        return not told and self.ended.code is not None

    @property
    def in_order(self) -> bool:
        """Whether the script said itself that it ended, if only because its time was over."""
        last = next((one for one in reversed(self.records) if isinstance(one, _ENDS)), None)
        return isinstance(last, Finished)

    @property
    def ending(self) -> Ending:
        """How it ended, in a word."""
        told = self.of(Finished)
        if self.ended.limit == "time" or (self.in_order and told[-1].why == "time"):
            return "time"
        if self.ended.limit or self.ended.signal:
            return "killed"
        return "failed" if self.raised or self.ended.code else "finished"


_ENDS = (Finished, Raised, Resumed)


def attempt(
    job: Job,
    plan: DryRunPlan,
    limits: Limits,
    environment: Mapping[str, str],
    hear: Hear,
    keep: Path | None = None,
) -> DryRunAttempt:
    """Run the child once.

    Args:
        job: what is run.
        plan: how.
        limits: what it may use.
        environment: variables that are set where the command would be given.
        hear: is told each record as it comes.
        keep: an empty folder for copies of what the job writes; None to let go of it.
    """
    given = {**environment, **{name: v for name, v in job.environment.items() if v is not None}}
    fake = plan.mode == "fake"
    size = job.ranks if fake else 1
    spec = {
        "script": str(job.script) if job.script and not job.module else None,
        "module": job.module,
        "code": job.code
        and {"path": str(job.base / job.code.place.path), "text": job.code.in_place},
        "argv": job.argv,
        "roots": [str(folder) for folder in _roots(job)],
        "mode": plan.mode,
        "gpus": [
            {"model": g.model, "memory_bytes": g.memory_bytes, "capability": g.capability}
            for g in plan.gpus
        ],
        "devices": plan.devices,
        "world": {"size": size, "rank": 0, "local_size": job.processes_per_node or 1},
        "seconds": _own_seconds(limits.seconds),
        "whole": plan.whole,
        "often": plan.often,
        "batch": plan.batch,
        "resume": plan.resume,
        "made": [*(("", str(job.base / one.text)) for one in job.makes), *plan.made],
    }
    ended = run_contained(
        [_python(job, given), str(CHILD), str(SPEC_DESCRIPTOR), str(RECORDS_DESCRIPTOR)],
        folder=job.folder,
        environment=given | _launched(job, alone=size == 1),
        limits=limits,
        spec=json.dumps(spec).encode(),
        keep=keep,
        hear=lambda line: list(map(hear, read([line]))),
    )
    return DryRunAttempt(plan, ended, tuple(read(ended.records)))


def _own_seconds(seconds: float) -> float:
    """When the child stops itself, and so can say where it is, before it is stopped."""
    return max(seconds - max(seconds / 10, 1.0), seconds / 2)


def _launched(job: Job, *, alone: bool) -> dict[str, str]:
    """The variables that the job's launchers set, torchrun's restarts among them."""
    values = _LAUNCHED | (_ALONE if alone else {})
    restarts = {name for name in values if "TORCHELASTIC" in name and "torchrun" in job.launchers}
    return {name: values[name] for name in values.keys() & (restarts | job.environment.keys())}


def _python(job: Job, environment: Mapping[str, str]) -> str:
    """The job's interpreter, else that of its name, else this one."""
    if job.interpreter is not None:
        return str(job.interpreter)
    name = job.program if job.program.startswith(("/", "python")) else "python"
    path = environment.get("PATH")
    return (shutil.which(name, path=path) if path else None) or sys.executable


def _roots(job: Job) -> Iterable[Path]:
    """The folders whose code is the user's."""
    return dict.fromkeys((job.folder, job.base, *([job.script.parent] if job.script else [])))
