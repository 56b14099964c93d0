"""What is simulated of a platform, and the request to the processes that do so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from epochzero.check import Target


How = Literal["simulated", "hinted", "impossible"]


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a platform has, and how much of it the job meets here.

    Attributes:
        what: such as ``memory``.
        how: ``simulated``, only ``hinted`` at, or ``impossible`` here.
        text: what the job finds, or why it does not; one sentence or less.
    """

    what: str
    how: How
    text: str


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated, and by what means.

    Attributes:
        target: the platform.
        ranks: how many processes the launcher in front of the command starts, all of them here; None
            for as many as the command says.
        namespaces: whether the system's namespaces may be used; else only Python is held to the platform.
        built: virtual environment with the target's packages; None for those of this machine.
    """

    target: Target
    ranks: int | None = None
    namespaces: bool = True
    built: Path | None = None


@dataclass(frozen=True, slots=True)
class MountedPath:
    """A place that the platform mounts.

    Attributes:
        path: of it.
        writable: whether the job may write there.
        bytes: what may be written there; None for no limit. With a limit, files are stored in memory.
        again: it is this machine's folder whatever the mount around it is.
    """

    path: str
    writable: bool = True
    bytes: int | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """The request to the processes around and in the job, as JSON.

    Attributes:
        namespaces: whether they are built.
        scratch: an empty folder on which the view is built.
        hidden: paths that are not there.
        shown: visible paths below hidden ones.
        mounts: where they are mounted.
        metered: directories of this machine with a limit of added bytes that only Python enforces.
        ledger: the file in which the job's Python notes what it writes to these.
        unseen: paths that can be hidden from Python only.
        shared_memory: bytes of ``/dev/shm``; None for this machine's.
        user: ``name``, ``uid``, ``gid``, ``home``, ``groups`` (number by name); None for ours.
        network: whether there is more than this machine.
        limits: ``open_files``, ``processes``, ``cpus``.
        python_processes: a limit of processes and threads that only Python can be held to; None for none.
        modules: top-level modules that the platform lacks.
        own_modules: likewise, where the job's own code imports them: libraries here need them.
        distributions: likewise.
        gpus: ``model``, ``memory_bytes``, ``capability`` of each; None where they are this machine's.
        folders: of the job's own code.
        ranks: variables of each rank that is started; none where the command starts its own.
    """

    namespaces: bool
    scratch: str
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    mounts: tuple[MountedPath, ...] = ()
    metered: tuple[MountedPath, ...] = ()
    ledger: str = ""
    unseen: tuple[str, ...] = ()
    shared_memory: int | None = None
    user: Mapping[str, Any] | None = None
    network: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)
    python_processes: int | None = None
    modules: tuple[str, ...] = ()
    own_modules: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    gpus: tuple[Mapping[str, Any], ...] | None = None
    folders: tuple[str, ...] = ()
    ranks: tuple[Mapping[str, str], ...] = ()

    def to_json(self) -> str:
        """The text that `inside` and `child` read."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class SimulationPlan:
    """How a job is run on a simulated platform.

    Attributes:
        name: of the platform.
        request: of the processes around and in the job.
        command: what is run, with its ranks.
        environment: of the job.
        aspects: what is simulated and what is not, in the order of the screen.
        memory_bytes: that all processes may hold together; None for no limit.
        time_limit_s: seconds until the job is asked to end; None for no limit.
    """

    name: str
    request: Request
    command: Sequence[str]
    environment: Mapping[str, str]
    aspects: tuple[Aspect, ...]
    memory_bytes: int | None = None
    time_limit_s: float | None = None
