"""A job that Slurm ran without us, recorded after its end: what sacct knows of it, and its log.

Sources: sacct(1), Fields and ``SLURM_TIME_FORMAT``; Slurm's Prolog and Epilog Guide, for the variables;
sbatch(1), ``--output``, for the name of a log.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.facts import Facts, facts_of_sacct
from epochzero.diagnose.model import Diagnosis
from epochzero.errors import EpochZeroError, InputError, writing
from epochzero.logs.source import find_logs
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import attempt_folder, derived_job
from epochzero.run.records.journal import NAME, Journal, read_journal
from epochzero.run.records.model import Conclusion, End, JobEvent, Start
from epochzero.run.records.output import Logs
from epochzero.run.scheduler.slurm import end_of_job

_SACCT_S = 60.0
_KEEP = 64 << 20
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
# The fields that we ask for where this sacct has them; a user's free text comes last.
_FIELDS = (
    "JobIDRaw", "JobID", "Cluster", "User", "State", "ExitCode", "Start", "End", "NodeList",
    "AllocTRES", "Restarts", "JobName", "WorkDir", "StdOut", "StdErr", "SubmitLine",
)  # fmt: skip
_EXPANDED = "StdOut"
# What the variables of an epilog tell of these.
_EPILOG = {
    "JobIDRaw": "SLURM_JOB_ID", "Cluster": "SLURM_CLUSTER_NAME", "User": "SLURM_JOB_USER",
    "ExitCode": "SLURM_JOB_EXIT_CODE2", "Start": "SLURM_JOB_START_TIME", "End": "SLURM_JOB_END_TIME",
    "NodeList": "SLURM_JOB_NODELIST", "Restarts": "SLURM_JOB_RESTART_COUNT", "JobName": "SLURM_JOB_NAME",
    "WorkDir": "SLURM_JOB_WORK_DIR", "StdOut": "SLURM_JOB_STDOUT", "StdErr": "SLURM_JOB_STDERR",
}  # fmt: skip
_NOT_ENDED = frozenset(("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "CONFIGURING"))

Row = Mapping[str, str]


class JobCompletingError(InputError):
    """The end of a job is not known until its epilog has returned."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job that has ended.

    Attributes:
        number: Slurm's own, without a step; cluster: in which.
        name, user, command, folder, nodes: what ran, whose, and where.
        attempt: 1 unless Slurm has started it again.
        facts: how it ended.
        logs: where it wrote, as far as Slurm tells.
    """

    number: str
    cluster: str
    name: str
    user: str
    command: tuple[str, ...]
    folder: str
    nodes: str
    attempt: int
    facts: Facts
    logs: tuple[Path, ...]

    @property
    def identity(self) -> str:
        """The same whoever records it; also that of a run of this name in the batch script."""
        return derived_job("slurm", self.name, self.cluster, self.number)


def slurm_jobs(number: str, environment: Mapping[str, str]) -> list[SlurmJob]:
    """What Slurm knows of a job, or of each job of an array.

    Args:
        number: Slurm's, such as 4242 or 4242_7.
        environment: of this process; in an epilog it tells what sacct does not know yet.

    Raises:
        JobCompletingError: the job's epilog runs, and neither sacct nor scontrol knows how the job ended.
        InputError: Slurm knows no such job, it has not ended, or there is no sacct.
    """
    of_epilog = _epilog_row(environment) if environment.get("SLURM_JOB_ID") == number else {}
    try:
        rows = _ask_sacct(number, environment)
    except InputError:
        if not of_epilog:
            raise
        rows = []
    steps: dict[str, list[Row]] = {}
    for row in rows or [of_epilog]:
        steps.setdefault(row.get("JobIDRaw", "").partition(".")[0], []).append(row)
    jobs = [_job(of_job, of_epilog) for raw, of_job in steps.items() if raw]
    if not jobs:
        raise InputError(f"Slurm has no record of job {number}")
    return jobs


def record_job(job: SlurmJob, home: Path, *, logs: Sequence[Path] = ()) -> Path | None:
    """Writes the journal of a job, as a run would have left it.

    Args:
        job: what Slurm knows of it.
        home: of EpochZero.
        logs: that it wrote; by default those that Slurm tells.

    Returns:
        The folder of its attempt; None when it was there already, recorded or run under
        `epochzero run`.

    Raises:
        InputError: a log that is given cannot be read, or the home cannot be written.
    """
    folder = attempt_folder(home, job.identity, job.attempt)
    if folder.exists() or _was_run(job, home):
        return None
    with writing(home):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Whoever looks at the runs meanwhile finds the attempt whole or not at all.
        making = Path(tempfile.mkdtemp(prefix="record-", dir=home))
    try:
        _write(job, making, logs)
        with suppress(OSError):
            os.rename(making, folder)
            return folder
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return None


def _ask_sacct(number: str, environment: Mapping[str, str]) -> list[Row]:
    known = _sacct(["--helpformat"], environment).split()
    names = [name for name in _FIELDS if name in known]
    options = ["--expand-patterns"] if _EXPANDED in names else []
    wanted = [f"--jobs={number}", "--parsable2", "--noheader", f"--format={','.join(names)}"]
    answer = _sacct([*wanted, *options], environment)
    return [
        dict(zip(names, line.split("|", len(names) - 1), strict=False))
        for line in answer.splitlines()
    ]


def _sacct(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Its output, with a zone at each time."""
    try:
        done = subprocess.run(
            ["sacct", *words],
            env={**environment, "SLURM_TIME_FORMAT": _TIME_FORMAT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SACCT_S,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise InputError("sacct is not on PATH; is this a machine of the cluster?") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"sacct cannot be executed: {error}") from error
    if done.returncode:
        stated = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise InputError(f"sacct failed with exit code {done.returncode}: {stated}")
    return done.stdout


def _epilog_row(environment: Mapping[str, str]) -> Row:
    """The variables of an epilog as a row of sacct; nothing where the job's end is not stated."""
    row = {field: environment.get(variable, "") for field, variable in _EPILOG.items()}
    if not row["ExitCode"]:
        return {}
    for field in ("Start", "End"):
        if row[field].isdigit():
            row[field] = datetime.fromtimestamp(int(row[field]), UTC).isoformat()
    row["State"] = "COMPLETED" if row["ExitCode"] == "0:0" else "FAILED"
    # The variables have the exit code 0:0 for a job that is cancelled or requeued, and unexpanded logs.
    return {**row, **end_of_job(row["JobIDRaw"], environment)}


def _job(rows: Sequence[Row], of_epilog: Row) -> SlurmJob:
    """Puts together sacct's rows and an epilog's variables."""
    first = dict(rows[0])
    if _state(first) in _NOT_ENDED and of_epilog:
        first |= {field: of_epilog[field] for field in ("State", "ExitCode", "End", "Restarts")}
    row = {**of_epilog, **{field: text for field, text in first.items() if text}}
    number = row["JobIDRaw"]
    if _state(row) in _NOT_ENDED:
        error = JobCompletingError if of_epilog else InputError
        raise error(f"job {number} has not ended: its state in Slurm is {_state(row)}")
    try:
        facts = facts_of_sacct([row, *rows[1:]])
    except ValueError as error:
        raise InputError(f"sacct's output cannot be parsed: {error}") from error
    name = row.get("JobName") or "batch"
    folder = row.get("WorkDir", "")
    usual = str(Path(folder, f"slurm-{row.get('JobID') or number}.out"))
    stated = (row.get("StdOut") or usual, row.get("StdErr", ""))
    restarts = row.get("Restarts", "")
    return SlurmJob(
        number=number,
        cluster=row.get("Cluster", ""),
        name=name,
        user=row.get("User", ""),
        command=_words(row.get("SubmitLine", "")) or (name,),
        folder=folder,
        nodes=row.get("NodeList") or platform.node(),
        attempt=int(restarts) + 1 if restarts.isdigit() else 1,
        facts=facts,
        logs=tuple(dict.fromkeys(Path(folder, path) for path in stated if path)),
    )


def _state(row: Row) -> str:
    return row.get("State", "").partition(" ")[0]


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return tuple(line.split())


def _was_run(job: SlurmJob, home: Path) -> bool:
    """Whether a supervisor within the job has kept it."""
    numbers = {"SLURM_JOB_ID": job.number, "SLURM_CLUSTER_NAME": job.cluster}
    for journal in home.glob(f"runs/*/*/{NAME}"):
        with suppress(OSError, InputError):
            if journal.stat().st_mtime < (job.facts.start or 0.0):
                continue
            _, first = next(read_journal(journal), (0, None))
            if not isinstance(first, Start) or first.job == job.identity:
                continue
            if numbers.items() <= first.scheduler.items():
                return True
    return False


def _write(job: SlurmJob, folder: Path, logs: Sequence[Path]) -> None:
    """All records of the attempt."""
    facts = job.facts
    now = time.time()
    end = now if facts.end is None else facts.end
    start = end if facts.start is None else facts.start
    elapsed = max(0.0, end - start)
    kept = Logs(folder, _KEEP)
    found = [_copy(path, kept, None) for path in logs] or [
        _copy(path, kept, job.user) for path in job.logs
    ]
    journal = Journal(folder)
    journal.write(
        Start(
            job=job.identity,
            attempt=job.attempt,
            name=job.name,
            command=job.command,
            folder=job.folder,
            host=job.nodes,
            user=job.user,
            pid=os.getpid(),
            time=start,
            gpus=facts.gpus or 0,
            launcher="slurm",
            scheduler={"SLURM_JOB_ID": job.number, "SLURM_CLUSTER_NAME": job.cluster},
        )
    )
    outputs = [replace(output, time=end, elapsed=elapsed) for output in kept.close(Clock())]
    for output in outputs:
        journal.write(output)
    text = f"state in Slurm: {facts.state or 'unknown'}"
    details = {} if any(found) else {"no_log": ", ".join(map(str, job.logs))}
    journal.write(JobEvent(end, elapsed, "slurm", text, details=details))
    journal.write(_ended(facts, end, elapsed))
    if not facts.ended_well:
        diagnosis = _diagnosis([folder / path for path in outputs[0].paths], facts)
        hours = (facts.gpus or 0) * elapsed / 3600
        journal.write(
            Conclusion(now, elapsed, diagnosis.to_dict() if diagnosis else None, gpu_hours=hours)
        )
    journal.close()


def _copy(path: Path, kept: Logs, user: str | None) -> bool:
    """Keeps a log; False where the user's own is not there.

    Args:
        path: of the log.
        kept: what it is written to.
        user: whose it must be, since root could read what a link leads to; None for any log.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if user is not None and not _is_log_of(user, os.fstat(file.fileno())):
                return False
            while data := file.read(1 << 20):
                kept.write(path.name, data)
    except OSError as error:
        if user is not None:
            return False
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return True


def _without_waiting(path: str, flags: int) -> int:
    """A named pipe is opened also when nobody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _is_log_of(user: str, status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    import pwd

    with suppress(KeyError):
        return os.geteuid() != 0 or status.st_uid == pwd.getpwnam(user).pw_uid
    return False


def _ended(facts: Facts, end: float, elapsed: float) -> End:
    """Slurm ends some jobs whose exit code is 0 all the same, as at their time limit."""
    code = facts.exit_status or (0 if facts.ended_well else 1)
    by_user = facts.state == "CANCELLED"
    by_slurm = facts.state in ("TIMEOUT", "PREEMPTED", "REQUEUED", "DEADLINE", "NODE_FAIL")
    why = "user" if by_user else "scheduler" if by_slurm else ""
    return End(end, elapsed, code, facts.signal, why)


def _diagnosis(logs: Sequence[Path], facts: Facts) -> Diagnosis | None:
    """None for a log that cannot be read as one."""
    with suppress(EpochZeroError):
        return Diagnoser().diagnose(find_logs(logs), facts)
    return None
