"""A platform as far as a job can tell: what is installed, mounted, allowed and how much there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GPU:
    """One GPU of a node.

    Attributes:
        model: as ``nvidia-smi`` names it.
        memory_bytes: in all.
        capability: compute capability, such as ``(9, 0)``; None for a GPU that does not know CUDA
            (AMD) or when it is not known.
    """

    model: str
    memory_bytes: int
    capability: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed distribution.

    Attributes:
        name: normalized (PEP 503).
        version: as it says.
        modules: top-level modules that it brings; None when they are not known (from ``pip freeze``).
        requires: its requirements (PEP 508), extras with their marker.
        extras: extras that it declares.
    """

    name: str
    version: str
    modules: tuple[str, ...] | None = None
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a public function or class of a library.

    Attributes:
        positional: names of parameters that may be given by position.
        required: how many of them must be given.
        keywords: names of parameters that may be given by name.
        required_keywords: of the keyword-only ones those without default.
        any_positional: whether it takes ``*args``.
        any_keyword: whether it takes ``**kwargs``.
    """

    positional: tuple[str, ...] = ()
    required: int = 0
    keywords: tuple[str, ...] = ()
    required_keywords: tuple[str, ...] = ()
    any_positional: bool = False
    any_keyword: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """A file system that the job sees.

    Attributes:
        path: where it begins.
        writable: whether the user may write there.
        free_bytes: None when not known.
        quota_bytes: what is left of the user's quota; None when there is none or it is not known.
        case_sensitive: whether names that differ in case are different files.
    """

    path: str
    writable: bool = True
    free_bytes: int | None = None
    quota_bytes: int | None = None
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class User:
    """Who the job runs as."""

    name: str = ""
    uid: int | None = None
    gid: int | None = None
    groups: tuple[str, ...] = ()
    home: str = ""


@dataclass(frozen=True, slots=True)
class NetworkAccess:
    """What can be reached: None where it is not known."""

    internet: bool | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A platform. Of what is None or missing nothing is known, and rules must not assume anything.

    Attributes:
        name: for people.
        python: version, such as ``(3, 11, 4)``.
        distributions: by normalized name; None when not known.
        api: of the chosen libraries by the module's dotted name the public names, each with its
            signature, or None where it has none that can be told (constants, modules). Members of
            a class stand beside it as ``Class.member``, without ``self``; of a class without any
            nothing is known. ``*`` and ``Class.*`` say that there may be more than are listed.
        shared_libraries: names of those that the loader finds (``libGL.so.1``).
        programs: names found on the path.
        gpus: of one node; None when not known; empty when there are none.
        driver: version of the NVIDIA driver.
        cuda: highest CUDA version that the driver takes.
        cuda_of_torch: CUDA version that the installed torch was built for; empty for a CPU build.
        gpu_architectures: that the installed torch was built for (``sm_90``).
        nodes: how many the job may use.
        mounts: by path.
        files: paths that are known to be there or not: path -> whether it is.
        listed: folders of which all that lies in them is among ``files``, as it was captured.
        user: who runs it.
        environment: variables that are set; secrets without their values.
        memory_bytes, shared_memory_bytes: limits of a node or container.
        cpus: processors of a node that a job may use: as many as may run at once.
        processes: limit of processes.
        time_limit_s: of a job.
        open_files: limit.
        network: what can be reached.
        ports: at which something listens now; None where that cannot be asked.
        working_folder: where jobs start.
        here: whether it is this machine, so that its file system can be asked.
        notes: what could not be found out when it was captured, and why.
    """

    name: str
    python: tuple[int, int, int] | None = None
    distributions: Mapping[str, Distribution] | None = None
    api: Mapping[str, Mapping[str, Signature | None]] = field(default_factory=dict)
    shared_libraries: frozenset[str] | None = None
    programs: frozenset[str] | None = None
    gpus: tuple[GPU, ...] | None = None
    driver: str = ""
    cuda: str = ""
    cuda_of_torch: str | None = None
    gpu_architectures: tuple[str, ...] | None = None
    nodes: int | None = None
    mounts: tuple[Mount, ...] | None = None
    files: Mapping[str, bool] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    user: User | None = None
    environment: Mapping[str, str] | None = None
    memory_bytes: int | None = None
    shared_memory_bytes: int | None = None
    cpus: int | None = None
    processes: int | None = None
    open_files: int | None = None
    time_limit_s: float | None = None
    network: NetworkAccess = NetworkAccess()
    ports: frozenset[int] | None = None
    working_folder: str = ""
    here: bool = False
    notes: tuple[str, ...] = ()
