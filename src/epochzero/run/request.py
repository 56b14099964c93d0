"""Everything that a caller can ask of a run, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from epochzero.run.observers.hangs import OnHang
from epochzero.run.process.supervisor import SupervisorOptions

if TYPE_CHECKING:
    from epochzero.check import Target
    from epochzero.code import Cache
    from epochzero.run.inject.grammar import InjectedFault
    from epochzero.run.watch.live import WatchOptions


DEFAULT_POLICY = "auto"

Retries: TypeAlias = Literal["advise", "auto", "never"] | int
"""``advise`` reports what the policy would do, ``auto`` does it, ``never`` starts nothing again, and a number
is that of retries whatever failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A job to run.

    Attributes:
        command: program and arguments.
        environment: of the job.
        folder: the directory in which the job runs.
        homes: directories for its logs and records; the first that can be written is used.
        name: of the job; empty for the name of its script.
        gpus: number of GPUs of the job; None for what the scheduler reports.
        policy: name or path of the retry policy.
        retries: whether the policy is applied.
        target: the platform that the job was written for; None for this machine.
        options: how each attempt runs.
        stall: seconds without progress until a hang is reported.
        on_hang: what is done with a hanging job: report, dump (with the frames of C and C++), kill,
            or restart as the policy decides.
        notes: tools in which a diagnosis is noted (`epochzero.run.notes`).
        spans: export OpenTelemetry spans of the job and its attempts.
        watch: how the training is watched; None for not at all.
        simulate: the platform to simulate on this machine; None for none.
        ranks: with ``simulate``: number of processes to start in place of the launcher.
        build_packages: with ``simulate``: install the packages of the platform first.
        faults: to inject; each comes once, in whichever attempt reaches it.
        capture: store what a replay of the failing step needs.
        cache: of parsed code.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    homes: tuple[Path, ...]
    name: str = ""
    gpus: int | None = None
    policy: str | Path = DEFAULT_POLICY
    retries: Retries = "advise"
    target: Target | str | Path | None = None
    options: SupervisorOptions = field(default_factory=SupervisorOptions)
    stall: float = 300.0
    on_hang: OnHang = "report"
    notes: tuple[str, ...] = ()
    spans: bool = False
    watch: WatchOptions | None = None
    simulate: Target | str | Path | None = None
    ranks: int | None = None
    build_packages: bool = False
    faults: tuple[InjectedFault, ...] = ()
    capture: bool = False
    cache: Cache | None = None
