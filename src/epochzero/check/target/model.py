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
class CallSignature:
    """The parameters of a public function or class of a library.

    Attributes:
        positional: names of parameters that may be given by position.
        required: how many of them must be given.
        keywords: names of parameters that may be given by name.
        required_keywords: keyword-only parameters without a default.
        any_positional: whether it accepts ``*args``.
        any_keyword: whether it accepts ``**kwargs``.
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
        path: mount point.
        writable: whether the user may write there.
        free_bytes: None if unknown.
        quota_bytes: what is left of the user's quota; None if there is none or it is unknown.
        case_sensitive: whether names that differ in case are different files.
    """

    path: str
    writable: bool = True
    free_bytes: int | None = None
    quota_bytes: int | None = None
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class User:
    """The user that runs the job."""

    name: str = ""
    uid: int | None = None
    gid: int | None = None
    groups: tuple[str, ...] = ()
    home: str = ""


@dataclass(frozen=True, slots=True)
class NetworkAccess:
    """Reachable networks; None if unknown."""

    internet: bool | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A platform. Properties that are None or missing are unknown; rules must not assume anything about them.

    Attributes:
        name: for people.
        python: version, such as ``(3, 11, 4)``.
        distributions: by normalized name; None if unknown.
        api: for the selected libraries, by dotted module name, the public names with their signatures, or None for a name
            without a known signature (constants, modules). Members of a class are listed as ``Class.member``, without
            ``self``; a class without any is unknown. ``*`` and ``Class.*`` mean that there may be more names.
        shared_libraries: names of those that the loader finds (``libGL.so.1``).
        programs: names on the search path.
        gpus: of one node; None if unknown; empty if there are none.
        driver: version of the NVIDIA driver.
        cuda: highest CUDA version that the driver supports.
        cuda_of_torch: CUDA version that the installed torch was built for; empty for a CPU build.
        gpu_architectures: architectures that the installed torch was built for (``sm_90``).
        nodes: number of nodes that the job may use.
        mounts: by path.
        files: known paths -> whether they exist.
        listed: directories whose whole content is in ``files``, as captured.
        user: the user that runs jobs.
        environment: variables that are set; secrets without their values.
        memory_bytes, shared_memory_bytes: limits of a node or container.
        cpus: number of processors of a node that a job may use at once.
        processes: limit of processes.
        time_limit_s: of a job.
        open_files: limit.
        network: reachable networks.
        ports: TCP ports in use; None if unknown.
        working_folder: directory in which jobs start.
        here: whether it is this machine, so that its file system can be inspected.
        notes: what could not be determined during the capture, and why.
    """

    name: str
    python: tuple[int, int, int] | None = None
    distributions: Mapping[str, Distribution] | None = None
    api: Mapping[str, Mapping[str, CallSignature | None]] = field(default_factory=dict)
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
