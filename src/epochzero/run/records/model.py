"""What is known of a job while it runs and after: immutable records in the order of their time.

An attempt is one start of a job's command on one node. What it leaves is a sequence of records, kept
in its journal (`epochzero.run.records.journal`) as they happen; the store and the screen are made of them.

Times: ``time`` is seconds since the epoch by the system's clock, which may jump; ``elapsed`` is
seconds since the attempt began by a clock that does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args

from epochzero.errors import InputError

SCHEMA = "epochzero.run/1"

Action = Literal["retry", "retry_elsewhere", "stop"]

HANG_EVENT = "stall"
"""`JobEvent.what` of a job that hangs; repeated while it lasts."""
HANG_OVER_EVENT = "stall_over"
"""`JobEvent.what` of a job that makes progress again after a hang."""
SLOW_RANK_EVENT = "slow_rank"
"""`JobEvent.what` of a rank that is slower than the others, or no longer is."""
SLOW_RANKS_EVENT = "slow_ranks"
"""`JobEvent.what` of the summary of slow ranks at the end of an attempt."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an attempt.

    Attributes:
        job: identity of the job, the same for all its attempts and all its nodes.
        attempt: 1 for the first.
        name: given by the user; by default derived from the command.
        command, folder: the command and its working directory.
        host, user, pid: of the process.
        rank: of this supervisor, if a launcher starts one per rank or node.
        world_size: number of ranks of the job; None if unknown.
        gpus: number of GPUs of the job.
        launcher: torchrun, slurm, kubernetes, ray, ... or python; empty if unknown.
        scheduler: variables that the scheduler sets, such as its job ID.
        target: name of the platform that the job is for; empty for this machine.
    """

    kind: ClassVar[str] = "started"
    job: str
    attempt: int
    name: str
    command: tuple[str, ...]
    folder: str
    host: str
    user: str
    pid: int
    time: float
    rank: int | None = None
    world_size: int | None = None
    gpus: int = 0
    launcher: str = ""
    scheduler: Mapping[str, str] = field(default_factory=dict)
    target: str = ""


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """The environment that an attempt ran in; secrets are hidden.

    Attributes:
        python: version of the job's Python; empty where the job has none.
        system: name and version of the operating system.
        packages: distribution -> version.
        driver, cuda: of the GPUs, empty where there are none.
        gpus: their models.
        variables: the environment.
        commit, branch: of the git repository in which the job ran.
        changes: ``git diff HEAD`` there, cut to a bound.
    """

    kind: ClassVar[str] = "snapshot"
    time: float
    elapsed: float
    python: str = ""
    system: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    cuda: str = ""
    gpus: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    branch: str = ""
    changes: str = ""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one moment: use in percent, memory in bytes.

    Attributes:
        throttled: why its clock is reduced: power, heat, ... ; empty if it is not.
    """

    index: int
    utilization: float
    memory_bytes: int
    memory_total_bytes: int
    temperature_celsius: float | None = None
    power_watts: float | None = None
    clock_mhz: float | None = None
    throttled: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the job's process tree and its node used at one moment.

    Attributes:
        processes: how many the tree has.
        cpu_percent: of one core; 250 is two and a half cores.
        memory_bytes: resident, of the tree.
        memory_available_bytes: what the node, or the job's control group, has left.
        read_bytes, written_bytes: of the tree since it began.
        disk_free_bytes: where the job runs.
        received_bytes, sent_bytes: of the node's network since the attempt began.
    """

    kind: ClassVar[str] = "sample"
    time: float
    elapsed: float
    processes: int
    cpu_percent: float
    memory_bytes: int
    memory_available_bytes: int
    read_bytes: int = 0
    written_bytes: int = 0
    disk_free_bytes: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    gpus: tuple[GpuSample, ...] = ()


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far the job is, as its log tells: None where it does not.

    Attributes:
        step, steps, epoch, epochs: where it is, and of how many.
        checkpoint: path of the checkpoint that was written last.
        loss: the last that was printed; of one that is NaN or infinite the journal and the store have
            None, and an event ``loss_not_finite`` says so.
    """

    kind: ClassVar[str] = "progress"
    time: float
    elapsed: float
    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    epochs: float | None = None
    checkpoint: str = ""
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to the job or to its supervision.

    Attributes:
        what: stall, stall_over, slow_rank, slow_ranks, rank_lost, ended_hung_ranks, ended_for_rank, loss_not_finite, memory, signal, killed_leftovers, output_dropped,
            journal_lost, ...
        text: in a sentence.
        rank: whose; None for the whole job.
        details: what belongs to it, such as stack dumps.
    """

    kind: ClassVar[str] = "event"
    time: float
    elapsed: float
    what: str
    text: str
    rank: int | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """A log that the attempt wrote.

    Attributes:
        name: of the log, such as ``output`` or ``rank3``.
        paths: its parts, the oldest first, in the attempt's folder.
        size: bytes that were written in all.
        dropped: bytes of these that were not kept, from the middle.
    """

    kind: ClassVar[str] = "output"
    time: float
    elapsed: float
    name: str
    paths: tuple[str, ...]
    size: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt.

    Attributes:
        exit_code: as in a shell, 128 + n for signal n.
        signal: number of the signal that killed it; None for none.
        why: what terminated it, if it did not exit by itself: user, scheduler, another_rank (the
            launcher, because that rank had failed), hang, ...
        state: the scheduler's state of the allocation, such as TIMEOUT; SIGNALED if it sent a warning; empty
            if it was not queried.
    """

    kind: ClassVar[str] = "ended"
    time: float
    elapsed: float
    exit_code: int
    signal: int | None = None
    why: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The results of the tools for a finished attempt, each in its documented JSON form, or None."""

    kind: ClassVar[str] = "concluded"
    time: float
    elapsed: float
    diagnosis: Mapping[str, Any] | None = None
    ranking: Mapping[str, Any] | None = None
    checked: Mapping[str, Any] | None = None
    gpu_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the job is started again, and why.

    Attributes:
        action: retry, retry_elsewhere (on another node) or stop.
        after: seconds to wait before.
        reason: in a sentence.
        policy: name of the policy that decided.
        avoid: nodes that should not be used again.
        saved_gpu_hours: what retries that were not made would have cost.
        risked_gpu_hours: what the retry costs if it fails at the same place.
        evidence: facts of `epochzero.run.retry.policy.EVIDENCE` that changed the odds that the failure is transient, and by
            which factor.
    """

    kind: ClassVar[str] = "decision"
    time: float
    elapsed: float
    action: Action
    after: float = 0.0
    reason: str = ""
    policy: str = ""
    avoid: tuple[str, ...] = ()
    saved_gpu_hours: float = 0.0
    risked_gpu_hours: float = 0.0
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of a person or of another tool."""

    kind: ClassVar[str] = "note"
    time: float
    elapsed: float
    text: str
    author: str = ""


Record = (
    Start
    | JobSnapshot
    | Sample
    | JobProgress
    | JobEvent
    | Output
    | End
    | Conclusion
    | Decision
    | Note
)

_KINDS: dict[str, type[Record]] = {cls.kind: cls for cls in get_args(Record)}


def to_dict(record: Record) -> dict[str, Any]:
    """The JSON form of a record; its kind stands in ``kind``."""
    return {"kind": record.kind, **asdict(record)}


def record_of(values: Mapping[str, Any]) -> Record:
    """The record that a JSON form is of. Fields of a newer version are passed over.

    Raises:
        InputError: no record has this kind, or a field that it must have is missing.
    """
    cls = _KINDS.get(str(values.get("kind")))
    if cls is None:
        raise InputError(f"unknown kind of record: {values.get('kind')!r}")
    known = {f.name: _value(values[f.name]) for f in fields(cls) if f.name in values}
    if cls is Sample:
        known["gpus"] = tuple(GpuSample(**gpu) for gpu in known.get("gpus", ()))
    try:
        return cls(**known)
    except TypeError as error:
        raise InputError(f"a record of kind {cls.kind!r} is incomplete: {error}") from error


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
