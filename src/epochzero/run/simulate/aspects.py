"""The table printed before the job starts: how far each property of the platform is simulated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from epochzero.check.paths.platform import beneath
from epochzero.check.target.model import Target
from epochzero.run.simulate.model import Aspect, How, Request
from epochzero.run.simulate.packages import PackageDifferences
from epochzero.run.simulate.places import Places

_MOST_NAMES = 3
_ONLY_PYTHON = "in Python only"


def aspects_of(
    target: Target,
    request: Request,
    places: Places,
    compared: PackageDifferences | None,
    here: Mapping[str, str],
    variables: Mapping[str, str],
    refused: str,
) -> tuple[Aspect, ...]:
    """The rows of the table; properties that the target does not specify have none.

    Args:
        target: the platform.
        request: what the job is held to.
        places: which of its files exist.
        compared: its packages compared with ours.
        here: variables of this machine.
        variables: of the job.
        refused: why there are no namespaces; empty where there are.
    """
    rows = [
        *_means(refused),
        *_variables(target, here, variables),
        *_paths(target, places, request),
        *_user(target, request),
        *_packages(target, compared),
        *_limits(target, request),
        *_network(target, request),
        *_gpus(target),
        *_ranks(request),
        *_hints(target),
    ]
    order = ("simulated", "hinted", "impossible")
    return tuple(sorted(rows, key=lambda row: order.index(row.how)))


def _means(refused: str) -> Iterator[Aspect]:
    if refused:
        text = f"namespaces are unavailable ({refused}); paths and network are restricted {_ONLY_PYTHON}"
        yield Aspect("isolation", "impossible", text)


def _variables(
    target: Target, here: Mapping[str, str], variables: Mapping[str, str]
) -> Iterator[Aspect]:
    if target.environment is None:
        return
    gone = sorted(here.keys() - variables.keys())
    removed = f"; {_some(gone)} of this machine removed" if gone else ""
    count = len(target.environment)
    yield Aspect(
        "variables", "simulated", f"{count} of the target{removed}; PATH is from this machine"
    )


def _paths(target: Target, places: Places, request: Request) -> Iterator[Aspect]:
    if places.hidden:
        yield Aspect("paths", "simulated", f"hidden: {_some(places.hidden)}")
    if places.unseen:
        yield Aspect("paths", "hinted", f"hidden from Python: {_some(places.unseen)}")
    fixed = [mount.path for mount in places.mounts if not mount.writable]
    if fixed:
        how: How = "simulated" if request.namespaces else "hinted"
        only = "" if request.namespaces else f", {_ONLY_PYTHON}"
        yield Aspect("read-only", how, f"{_some(fixed)}{only}")
    made = [m for m in places.mounts if not os.path.lexists(m.path) and not m.again]
    if made and request.namespaces:
        yield Aspect("mounts", "hinted", f"empty: {_some([m.path for m in made])}")
    limited = [m.path for m in places.mounts if m.bytes is not None]
    if limited and request.namespaces:
        text = (
            f"{_some(limited)}; data written there are stored in memory and deleted after the job"
        )
        yield Aspect("quota", "simulated", text)
    if places.metered:
        own = request.folders[0]
        paths = [own if beneath(own, mount.path) else mount.path for mount in places.metered]
        names = _some(list(dict.fromkeys(paths)))
        yield Aspect(
            "quota", "hinted", f"{names}, {_ONLY_PYTHON}; data written there are not deleted"
        )
    if places.unlimited:
        text = f"{_some(places.unlimited)}: contains the job's real directory"
        yield Aspect("quota", "impossible", text)
    if places.only_there:
        text = f"this machine has no {_some(places.only_there)}"
        yield Aspect("files", "impossible", text)
    if target.working_folder and target.working_folder != request.folders[0]:
        text = f"{target.working_folder} on the target; {request.folders[0]} here"
        yield Aspect("folder", "hinted", text)


def _user(target: Target, request: Request) -> Iterator[Aspect]:
    user = target.user
    if user is None:
        return
    if request.user is not None:
        text = f"{request.user['name']} ({user.uid}:{user.gid}), mapped to your own user"
        yield Aspect("user", "simulated", text)
    elif user.uid is not None or user.name:
        yield Aspect("user", "hinted", "HOME, USER and LOGNAME only")
    if user.groups:
        yield Aspect(
            "groups", "hinted", f"{_some(user.groups)}: names only, without their permissions"
        )


def _packages(target: Target, compared: PackageDifferences | None) -> Iterator[Aspect]:
    if compared is None:
        if target.distributions is not None:
            yield Aspect("packages", "impossible", "no Python on the job's PATH")
        return
    if compared.python:
        assert target.python is not None
        text = f"{'.'.join(map(str, target.python))} on the target; {compared.python} here"
        yield Aspect("Python", "hinted", text)
    lacking = (*compared.modules, *compared.own_modules)
    if lacking:
        yield Aspect("packages", "simulated", f"hidden: {_some(lacking)}")
    elif target.distributions is not None:
        yield Aspect("packages", "simulated", "this machine has no additional packages")
    if compared.versions:
        yield Aspect(
            "versions",
            "hinted",
            f"{_some(compared.versions)}; --build-packages installs the target's versions",
        )
    if compared.missing:
        text = f"{_some(compared.missing)} missing here; --build-packages installs them"
        yield Aspect("packages", "impossible", text)


def _limits(target: Target, request: Request) -> Iterator[Aspect]:
    if target.memory_bytes is not None:
        text = (
            f"{_size(target.memory_bytes)} for all processes, sampled ten to fifty times per second"
        )
        yield Aspect("memory", "simulated", text)
    if target.shared_memory_bytes is not None:
        seen: How = "simulated" if request.namespaces else "impossible"
        only = "" if request.namespaces else ": requires namespaces"
        yield Aspect("/dev/shm", seen, f"{_size(target.shared_memory_bytes)}{only}")
    if target.processes is not None:
        if "processes" in request.limits:
            yield Aspect("processes", "simulated", f"{target.processes}, threads included")
        else:
            yield Aspect("processes", "hinted", f"{target.processes}, {_ONLY_PYTHON}")
    if target.open_files is not None:
        yield Aspect("open files", "simulated", f"{target.open_files} per process")
    if target.time_limit_s is not None:
        yield Aspect("time", "simulated", f"{target.time_limit_s:g} s, then SIGTERM and SIGKILL")
    if target.cpus is not None:
        own = len(os.sched_getaffinity(0))
        if target.cpus <= own:
            yield Aspect("processors", "simulated", str(target.cpus))
        else:
            yield Aspect("processors", "impossible", f"{target.cpus} on the target; {own} here")


def _network(target: Target, request: Request) -> Iterator[Aspect]:
    if target.network.internet is False:
        hosts = f", not even {_some(target.network.hosts)}" if target.network.hosts else ""
        if request.namespaces:
            yield Aspect("network", "simulated", f"only this machine is reachable{hosts}")
        else:
            yield Aspect("network", "hinted", f"off, {_ONLY_PYTHON}{hosts}")


def _gpus(target: Target) -> Iterator[Aspect]:
    if target.gpus is None:
        return
    if not target.gpus:
        yield Aspect("GPUs", "simulated", "none")
        return
    first = target.gpus[0]
    text = f"{len(target.gpus)} x {first.model}, {_size(first.memory_bytes)} each"
    if first.capability is None:
        yield Aspect("GPUs", "impossible", f"{text}: no CUDA")
        return
    yield Aspect("GPUs", "simulated", f"{text}: for PyTorch, computed on the CPU")
    yield Aspect("GPU kernels", "impossible", "speed, custom kernels, JAX and TensorFlow on GPUs")


def _ranks(request: Request) -> Iterator[Aspect]:
    if request.ranks:
        yield Aspect("ranks", "simulated", f"{len(request.ranks)} here, over gloo")


def _hints(target: Target) -> Iterator[Aspect]:
    values = {
        "driver": target.driver,
        "CUDA": target.cuda,
        "nodes": target.nodes if target.nodes not in (None, 1) else None,
        "programs": target.programs,
        "libraries": target.shared_libraries,
    }
    known = [name for name, value in values.items() if value]
    if known:
        yield Aspect(
            "not simulated", "impossible", f"{', '.join(known)}; `epochzero check` checks them"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _size(number: int) -> str:
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << power:
            return f"{number / (1 << power):.3g} {unit}"
    return f"{number} bytes"
