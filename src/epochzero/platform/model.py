"""What the systems report, in one form.

Named tuples, since the guard of a job imports them: data classes would take ten milliseconds more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ProcessStatus(NamedTuple):
    """One process at one moment. A number that the system does not report is 0.

    Attributes:
        pid, parent: numbers. The parent of an orphan that was not adopted is the leader of its session.
        started: a number that grows with the time of the start; with ``pid`` it is never used again.
        state: ``R`` runs, ``S`` sleeps, ``T`` is stopped, ``Z`` has exited and was not waited for.
        status: how it ended, as waitpid(2) reports it; of one in state ``Z``.
        cpu_seconds: of all its threads, and on Linux of its children that have exited.
        memory_bytes: resident.
        read_bytes, written_bytes: from and to storage; also of its children that have exited.
        transferred_bytes: that passed through read and write calls, of files, pipes and terminals.
    """

    pid: int
    parent: int
    started: int
    state: str
    status: int
    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    transferred_bytes: int = 0


class SystemUser(NamedTuple):
    """The user of this process; ``groups`` are names, or numbers where a group has none."""

    name: str
    uid: int
    gid: int
    groups: Sequence[str]
    home: str


class ResourceLimits(NamedTuple):
    """Limits of this process; None where there is none."""

    address_space_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    memory_bytes: int | None = None
