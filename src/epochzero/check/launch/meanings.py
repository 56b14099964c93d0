"""The meanings of launcher options for a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from epochzero.check.launch.model import CommandSource, Job, Word

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([kmgtp]?)(i?)b?", re.IGNORECASE)
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)([smhd]?)")
_CLOCK = {-1: (3600, 60, 1), 1: (60,), 2: (60, 1), 3: (3600, 60, 1)}
"""Seconds per unit of a Slurm time, by the number of its parts; -1 for a time with days."""
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def bytes_of(text: str, unit: str = "", *, decimal: bool = False) -> int | None:
    """The bytes of ``64G``, ``512Mi`` or ``1.5tb``; None if the text is not a quantity.

    Args:
        text: a number and a unit.
        unit: the default unit, such as ``m`` for Slurm.
        decimal: whether ``G`` is 10**9 and only ``Gi`` is 2**30, as in Kubernetes.
    """
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return None
    power = _UNITS[(found[2] or unit).lower()]
    factor = 1000 ** (power // 10) if decimal and not found[3] else 1 << power
    return int(float(found[1]) * factor)


def seconds_of(text: str) -> float | None:
    """The seconds of ``90``, ``30s``, ``1.5h`` or ``2d``, as ``timeout`` reads them."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _SECONDS[found[2]] if found else None


def slurm_seconds(text: str) -> float | None:
    """The seconds of Slurm's ``minutes``, ``m:s``, ``h:m:s``, ``d-h``, ``d-h:m`` or ``d-h:m:s``."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(_is_count(part) for part in (*parts, *([days] if dash else ()))) or len(parts) > 3:
        return None
    units = _CLOCK[-1 if dash else len(parts)]
    clock_s = sum(int(part) * unit for part, unit in zip(parts, units, strict=False))
    return float(clock_s + (int(days) * 86400 if dash else 0))


def count_of(text: str) -> int | None:
    """A number that is written with digits only; None for ``auto``, ``1:4`` and similar values."""
    return int(text) if _is_count(text) else None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def with_source(job: Job, launcher: str, name: str, value: Word) -> Job:
    """The job, with the location of a launcher argument added."""
    source = CommandSource(value.place, value.text)
    return replace(
        job, argument_sources={**job.argument_sources, name: source, f"{launcher} {name}": source}
    )


def _counts(field: str) -> Callable[[Job, Word], Job]:
    def says(job: Job, value: Word) -> Job:
        return job.with_allocation(**{field: count_of(value.text)})

    return says


def totals(job: Job) -> Job:
    """The job, with the numbers that follow from the given ones."""
    nodes, each, every = (
        job.allocation.nodes,
        job.allocation.processes_per_node,
        job.allocation.processes,
    )
    if nodes is None and every and each and every % each == 0:
        nodes = every // each
    elif every is not None and each is None and nodes and every % nodes == 0:
        each = every // nodes
    elif every is None and each is not None and nodes:
        every = each * nodes
    gpus_each, gpus = job.allocation.gpus_per_node, job.allocation.gpus
    if gpus_each is None and gpus is not None and nodes and gpus % nodes == 0:
        gpus_each = gpus // nodes
    elif gpus is None and gpus_each is not None and nodes:
        gpus = gpus_each * nodes
    return job.with_allocation(
        nodes=nodes,
        processes=every,
        processes_per_node=each,
        gpus=gpus,
        gpus_per_node=gpus_each,
    )


def _gpus_of(value: Word) -> int | None:
    """The number of GPUs in Slurm's ``4``, ``a100:4`` and ``a100:2,v100:2``; a type alone is one GPU."""
    if not value.known:
        return None
    last = [part.split("(")[0].rsplit(":", 1)[-1] for part in value.text.split(",")]
    return sum(int(count) if _is_count(count) else 1 for count in last) or None


def _gres(job: Job, value: Word) -> Job:
    gpus = [part for part in value.text.split(",") if part.split(":")[0] in ("gpu", "gres/gpu")]
    if not gpus:
        return job
    return job.with_allocation(gpus_per_node=_gpus_of(replace(value, text=",".join(gpus))))


def _docker_gpus(job: Job, value: Word) -> Job:
    text = value.text.strip("\"'")
    if text.startswith("device="):
        return job.with_allocation(gpus_per_node=len(text[7:].split(",")))
    return job.with_allocation(gpus_per_node=count_of(text.removeprefix("count=")))


def _memory(unit: str = "") -> Callable[[Job, Word], Job]:
    def says(job: Job, value: Word) -> Job:
        # Slurm's --mem=0 is all that the node has.
        return job.with_allocation(memory_bytes=bytes_of(value.text, unit) or None)

    return says


def _shared_memory(job: Job, value: Word) -> Job:
    return job.with_allocation(shared_memory_bytes=bytes_of(value.text))


def _ipc(job: Job, value: Word) -> Job:
    """``host``: the container uses the shared memory of the machine."""
    return job if value.text == "private" else job.with_allocation(shared_memory_bytes=None)


def _slurm_time(job: Job, value: Word) -> Job:
    return job.with_allocation(time_limit_s=slurm_seconds(value.text) or None)


def _lsf_time(job: Job, value: Word) -> Job:
    """``90`` minutes or ``24:00`` hours and minutes."""
    return job.with_allocation(
        time_limit_s=slurm_seconds(f"0-{value.text}" if ":" in value.text else value.text)
    )


def _lsf_gpu(job: Job, value: Word) -> Job:
    """``num=4:mode=exclusive_process``, per host."""
    found = re.search(r"\bnum=(\d{1,6})", value.text)
    return job.with_allocation(gpus_per_node=int(found[1])) if found and value.known else job


def _resources(job: Job, value: Word) -> Job:
    """``select=2:ncpus=8:ngpus=4,walltime=24:00:00`` of PBS, ``gpu=1,h_rt=3600`` of Grid Engine."""
    if not value.known:
        return job
    for part in re.split("[,:](?=[a-z_]+=)", value.text):
        name, _, text = part.partition("=")
        if name in ("walltime", "h_rt"):
            clock = [int(each) for each in text.split(":") if _is_count(each)]
            seconds = sum(each * 60**at for at, each in enumerate(reversed(clock)))
            job = job.with_allocation(time_limit_s=float(seconds) or None)
        elif name in ("nodes", "select"):
            job = job.with_allocation(nodes=count_of(text))
        elif name in ("ngpus", "gpus", "gpu"):
            job = job.with_allocation(gpus_per_node=count_of(text))
        elif name == "mem":
            job = job.with_allocation(memory_bytes=bytes_of(text) or None)
    return job


def _duration(job: Job, value: Word) -> Job:
    limits = [limit for limit in (seconds_of(value.text), job.allocation.time_limit_s) if limit]
    return job.with_allocation(time_limit_s=min(limits, default=None))


def _output(job: Job, value: Word) -> Job:
    # Patterns such as %j are replaced at run time; the directory is known nevertheless.
    if not value.known or not value.text:
        return job
    return job.with_script(
        writes=(*job.launch_script.writes, CommandSource(value.place, value.text))
    )


def _environment(job: Job, value: Word) -> Job:
    name, equals, text = value.text.partition("=")
    if not name.isidentifier() or not equals:  # a name alone passes the variable through
        return job
    return replace(job, environment={**job.environment, name: text if value.known else None})


def _environments(job: Job, value: Word) -> Job:
    for part in value.text.split(","):
        job = _environment(job, replace(value, text=part))
    return job


def _requirements(job: Job, value: Word) -> Job:
    return job.with_script(requires=(*job.launch_script.requires, *value.text.split(",")))


def _mounts(job: Job, value: Word) -> Job:
    for part in value.text.split(","):
        outside, _, rest = part.partition(":")
        inside, _, mode = rest.partition(":")
        if value.known and outside:
            job = _mounted(job, inside or outside, outside, "ro" in mode.split(","))
    return job


def _volume(job: Job, value: Word) -> Job:
    """``/a:/b:ro`` of docker; a named volume, ``a:/b``, is not a directory of this machine."""
    first, _, rest = value.text.partition(":")
    inside, _, mode = rest.partition(":")
    if not value.known or not inside:
        return job
    outside = first if first.startswith(("/", ".", "~")) else f"volume {first}"
    return _mounted(job, inside, outside, "ro" in mode.split(","))


def _mount(job: Job, value: Word) -> Job:
    """``type=bind,source=/a,target=/b,readonly`` of docker."""
    parts = dict(part.partition("=")[::2] for part in value.text.split(","))
    inside = parts.get("target") or parts.get("destination") or parts.get("dst") or ""
    outside = parts.get("source") or parts.get("src") or parts.get("type", "")
    if not value.known or not inside:
        return job
    return _mounted(job, inside, outside, "readonly" in parts or "ro" in parts)


def _tmpfs(job: Job, value: Word) -> Job:
    """``/scratch:size=1g``: an empty directory in memory."""
    return _mounted(job, value.text.partition(":")[0], "tmpfs", False) if value.known else job


def _mounted(job: Job, inside: str, outside: str, read_only: bool) -> Job:
    modes = job.read_only | {inside} if read_only else job.read_only - {inside}
    return replace(job, mounts={**job.mounts, inside: outside}, read_only=modes)


def _image(job: Job, value: Word) -> Job:
    return replace(job, container=value.text)


def _slots(job: Job, value: Word) -> Job:
    """``host1:2,host2:2`` of Horovod and MPI."""
    hosts = {part.partition(":")[0] for part in value.text.split(",") if part}
    return job.with_allocation(nodes=len(hosts) or None) if value.known else job


def _include(job: Job, value: Word) -> Job:
    """``host1@host2:0,2`` of DeepSpeed: hosts, each with its GPUs if they are named."""
    if not value.known:
        return job
    hosts = [part.partition(":")[::2] for part in value.text.split("@") if part]
    counts = {len(gpus.split(",")) if gpus else None for _, gpus in hosts}
    each = counts.pop() if len(counts) == 1 else None
    return job.with_allocation(nodes=len(hosts) or None, processes_per_node=each)


def _map_by(job: Job, value: Word) -> Job:
    """``ppr:4:node`` of Open MPI."""
    parts = value.text.split(":")
    if len(parts) > 2 and parts[0] == "ppr" and parts[2] == "node":
        return job.with_allocation(processes_per_node=count_of(parts[1]))
    return job


MEANINGS: Mapping[str, Callable[[Job, Word], Job]] = {
    "nodes": _counts("nodes"),
    "processes": _counts("processes"),
    "processes_per_node": _counts("processes_per_node"),
    "cpus": _counts("cpus"),
    "gpus_per_node": lambda job, value: job.with_allocation(gpus_per_node=_gpus_of(value)),
    "gpus": lambda job, value: job.with_allocation(gpus=_gpus_of(value)),
    "gres": _gres,
    "docker_gpus": _docker_gpus,
    "memory": _memory(),
    "slurm_memory": _memory("m"),
    "shared_memory": _shared_memory,
    "ipc": _ipc,
    "slurm_time": _slurm_time,
    "duration": _duration,
    "lsf_time": _lsf_time,
    "lsf_gpu": _lsf_gpu,
    "resources": _resources,
    "output": _output,
    "environment": _environment,
    "environments": _environments,
    "export": _environments,
    "requirements": _requirements,
    "mounts": _mounts,
    "volume": _volume,
    "mount": _mount,
    "tmpfs": _tmpfs,
    "image": _image,
    "slots": _slots,
    "include": _include,
    "map_by": _map_by,
}
"""The effect of an option on the job, by the meaning in the launcher's file. Options that name a file, a directory or the
program to run are handled in ``command``.
"""
