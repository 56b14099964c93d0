"""Differences between two platforms, worst first, with the failure that each can cause.

Half of the failures of deep-learning jobs come from such differences (Zhang et al., "An Empirical Study on Program Failures
of Deep Learning Jobs", ICSE 2020, sections 3.2 and 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from epochzero.check.target.gpus import version
from epochzero.check.target.model import GPU, Distribution, Mount, Target
from epochzero.check.target.packages import likely_modules

SCHEMA = "epochzero.target-diff/1"

# Worst first: what certainly stops a job that needs it, then what may.
_ORDER = (
    "module", "python", "major version", "gpus", "gpu memory", "gpu capability", "cuda", "driver",
    "read-only", "shared library", "program", "memory", "shared memory", "space", "case", "mount",
    "user", "environment", "network", "limit", "nodes", "version", "file",
)  # fmt: skip
_LESS_SPACE = 0.5


@dataclass(frozen=True, slots=True)
class TargetDifference:
    """A difference.

    Attributes:
        kind: kind of the property; kinds are ordered by severity.
        name: name of the module, mount or variable; empty if there is only one.
        first: value on the first platform.
        second: value on the second.
        category: of the failure that a job may have that runs on the first and moves to the second.
        consequence: what then happens.
    """

    kind: str
    name: str
    first: str
    second: str
    category: str
    consequence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two platforms.

    Attributes:
        first, second: names of the platforms.
        differences: worst first.
        unknown: keys that one of the two does not specify, so that they could not be compared.
    """

    first: str
    second: str
    differences: tuple[TargetDifference, ...]
    unknown: tuple[str, ...]

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, **asdict(self)}


def differences(first: Target, second: Target) -> Comparison:
    """Compare the platform where a job runs with another one.

    Args:
        first: where the job runs or was written.
        second: where it is to run. What it has more, newer or larger is no difference, except for Python and major
            versions.
    """
    found = [
        *_distributions(first, second),
        *_python(first, second),
        *_gpus(first, second),
        *_cuda(first, second),
        *_names(first, second),
        *_amounts(first, second),
        *_mounts(first, second),
        *_surroundings(first, second),
    ]
    found.sort(key=lambda each: (_ORDER.index(each.kind), each.name))
    unknown = [key for key in _COMPARED if _is_unknown(first, key) != _is_unknown(second, key)]
    return Comparison(first.name, second.name, tuple(found), tuple(unknown))


_COMPARED = (
    "python", "distributions", "shared_libraries", "programs", "gpus", "driver", "cuda_of_torch",
    "nodes", "mounts", "user", "environment", "memory_bytes", "shared_memory_bytes", "cpus", "processes",
    "open_files", "time_limit_s",
)  # fmt: skip


def _is_unknown(target: Target, key: str) -> bool:
    value = getattr(target, key)
    return value is None or (key == "driver" and not value)


def _distributions(first: Target, second: Target) -> Iterator[TargetDifference]:
    ours, theirs = first.distributions, second.distributions
    if ours is None or theirs is None:
        return
    there = {module for each in theirs.values() for module in likely_modules(each)}
    for name, each in ours.items():
        other = theirs.get(name)
        if other is not None:
            yield from _versions(each, other)
            continue
        for module in likely_modules(each):
            if module not in there and not module.startswith("_"):
                yield TargetDifference(
                    "module", module, f"{name} {each.version}", "missing", "library_not_found",
                    f"`import {module}` ends with ModuleNotFoundError",
                )  # fmt: skip


def _versions(each: Distribution, other: Distribution) -> Iterator[TargetDifference]:
    if not each.version or not other.version or each.version == other.version:
        return
    ours, theirs = version(each.version), version(other.version)
    # Before 1.0 the second number is the one with incompatible changes.
    width = 1 if ours[:1] != (0,) else 2
    kind = "major version" if ours[:width] != theirs[:width] else "version"
    yield TargetDifference(
        kind, each.name, each.version, other.version, "framework_api_misuse",
        "names and parameters may have changed",
    )  # fmt: skip


def _python(first: Target, second: Target) -> Iterator[TargetDifference]:
    if first.python is None or second.python is None or first.python[:2] == second.python[:2]:
        return
    older = second.python < first.python
    yield TargetDifference(
        "python", "", ".".join(map(str, first.python)), ".".join(map(str, second.python)),
        "syntax_error" if older else "library_not_found",
        "syntax that the older one does not know is an error" if older
        else "modules that Python dropped are missing, and old wheels do not fit",
    )  # fmt: skip


def _gpus(first: Target, second: Target) -> Iterator[TargetDifference]:
    if first.gpus is None or second.gpus is None:
        return
    if len(second.gpus) < len(first.gpus):
        yield TargetDifference(
            "gpus", "", _count(first.gpus), _count(second.gpus), "illegal_argument",
            "a rank uses a device that does not exist",
        )  # fmt: skip
    if not first.gpus or not second.gpus:
        return
    ours, theirs = (min(t.gpus or (), key=lambda g: g.memory_bytes) for t in (first, second))
    if theirs.memory_bytes < ours.memory_bytes:
        yield TargetDifference(
            "gpu memory", "", f"{ours.model} {_size(ours.memory_bytes)}",
            f"{theirs.model} {_size(theirs.memory_bytes)}", "gpu_out_of_memory",
            "what fits there does not fit here",
        )  # fmt: skip
    if ours.capability != theirs.capability:
        yield TargetDifference(
            "gpu capability", "", _capability(ours), _capability(theirs), "framework_api_misuse",
            "a build without code for it has no kernel to run; bfloat16 and fused kernels need 8.0",
        )  # fmt: skip


def _count(gpus: tuple[GPU, ...]) -> str:
    return f"{len(gpus)} x {gpus[0].model}" if gpus else "none"


def _capability(gpu: GPU) -> str:
    return f"{gpu.capability[0]}.{gpu.capability[1]}" if gpu.capability else "no CUDA"


def _cuda(first: Target, second: Target) -> Iterator[TargetDifference]:
    if first.driver and second.driver and version(second.driver) < version(first.driver):
        yield TargetDifference(
            "driver", "", first.driver, second.driver, "framework_api_misuse",
            "CUDA reports that the driver is too old for the build",
        )  # fmt: skip
    ours, theirs = first.cuda_of_torch, second.cuda_of_torch
    if ours is not None and theirs is not None and ours != theirs:
        yield TargetDifference(
            "cuda", "torch", ours or "CPU build", theirs or "CPU build", "framework_api_misuse",
            "extensions that were built for the other CUDA do not load, and a CPU build has no GPU",
        )  # fmt: skip


def _names(first: Target, second: Target) -> Iterator[TargetDifference]:
    for kind, ours, theirs, consequence in (
        ("shared library", first.shared_libraries, second.shared_libraries,
         "an extension that needs it ends with ImportError or OSError"),
        ("program", first.programs, second.programs, "calling it ends with FileNotFoundError"),
    ):  # fmt: skip
        if ours is None or theirs is None:
            continue
        category = "library_not_found" if kind == "shared library" else "path_not_found"
        for name in ours - theirs:
            yield TargetDifference(kind, name, "there", "missing", category, consequence)


def _amounts(first: Target, second: Target) -> Iterator[TargetDifference]:
    for kind, name, key, category, consequence in (
        ("memory", "", "memory_bytes", "cpu_out_of_memory", "the kernel kills the process"),
        ("shared memory", "/dev/shm", "shared_memory_bytes", "cpu_out_of_memory",
         "data loader workers end with a bus error"),
        ("limit", "processors", "cpus", "timeout", "data loader workers wait for one another"),
        ("limit", "processes", "processes", "cpu_out_of_memory", "no worker can be started"),
        ("limit", "open files", "open_files", "cpu_out_of_memory", "too many open files"),
        ("limit", "time", "time_limit_s", "timeout", "the scheduler terminates the job"),
        ("nodes", "", "nodes", "communication_failure", "ranks wait for others that never come"),
    ):  # fmt: skip
        ours, theirs = getattr(first, key), getattr(second, key)
        if ours is not None and theirs is not None and theirs < ours:
            show = _size if key.endswith("_bytes") else str
            yield TargetDifference(kind, name, show(ours), show(theirs), category, consequence)


def _mounts(first: Target, second: Target) -> Iterator[TargetDifference]:
    if first.mounts is None or second.mounts is None:
        return
    there = {mount.path: mount for mount in second.mounts}
    for mount in first.mounts:
        other = there.get(mount.path)
        if other is None:
            yield TargetDifference(
                "mount", mount.path, "mounted", "missing", "path_not_found",
                "paths below it do not exist",
            )  # fmt: skip
        else:
            yield from _mount(mount, other)


def _mount(mount: Mount, other: Mount) -> Iterator[TargetDifference]:
    if mount.writable and not other.writable:
        yield TargetDifference(
            "read-only", mount.path, "writable", "read-only", "permission_denied",
            "writing ends with OSError: Read-only file system",
        )  # fmt: skip
    if mount.case_sensitive != other.case_sensitive:
        says = {True: "names in other case are other files", False: "case does not matter"}
        yield TargetDifference(
            "case", mount.path, says[mount.case_sensitive], says[other.case_sensitive],
            "path_not_found", "a path in the wrong case is not found",
        )  # fmt: skip
    ours, theirs = _room(mount), _room(other)
    if ours is not None and theirs is not None and theirs < ours * _LESS_SPACE:
        yield TargetDifference(
            "space", mount.path, f"{_size(ours)} free", f"{_size(theirs)} free", "storage_full",
            "checkpoints do not fit",
        )  # fmt: skip


def _room(mount: Mount) -> int | None:
    limits = [n for n in (mount.free_bytes, mount.quota_bytes) if n is not None]
    return min(limits, default=None)


def _surroundings(first: Target, second: Target) -> Iterator[TargetDifference]:
    if first.environment is not None and second.environment is not None:
        for name in first.environment.keys() - second.environment.keys():
            yield TargetDifference(
                "environment", name, "set", "not set", "key_not_found",
                f'`os.environ["{name}"]` ends with KeyError',
            )  # fmt: skip
    if first.user and second.user and first.user.uid == 0 and second.user.uid not in {0, None}:
        yield TargetDifference(
            "user", "", "root", second.user.name or str(second.user.uid), "permission_denied",
            "installing packages and writing to system directories is refused",
        )  # fmt: skip
    if first.network.internet and second.network.internet is False:
        yield TargetDifference(
            "network", "", "internet", "none", "communication_failure",
            "downloads at run time fail",
        )  # fmt: skip
    for path, is_there in first.files.items():
        if is_there and second.files.get(path) is False:
            yield TargetDifference(
                "file", path, "there", "missing", "path_not_found", "opening it fails"
            )


def _size(number: int) -> str:
    """A size in bytes as text.

    >>> _size(85899345920)
    '80.0 GiB'
    """
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "B" else f"{number} B"
        size /= 1024
    return f"{size:.1f} TiB"
