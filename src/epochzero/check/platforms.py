"""The platform of each job when no target is given: this machine, or the nodes of a batch system.

A machine with the batch system's own command shares directories, and environments of Python in them, with the
nodes; any other machine shares nothing. The nodes have their own GPUs, limits, programs and system Python.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from epochzero import launchers
from epochzero.check.findings import Unknown
from epochzero.check.launch.environments import is_of_the_system
from epochzero.check.launch.model import Job
from epochzero.check.target import (
    PythonInstallation,
    read_interpreter,
    running,
    this_machine,
    with_interpreter,
)
from epochzero.check.target.model import Target
from epochzero.errors import InputError


def machines_of(jobs: Sequence[Job], environment: Mapping[str, str] | None) -> list[Target]:
    """This machine for each job, or what it shares with a cluster's nodes, with the Python that would run the job."""
    found: dict[PythonInstallation | None, Target] = {}
    for job in jobs:
        interpreter = _interpreter(job, environment)
        if not found:
            machine = this_machine(environment or {}, interpreter=interpreter)
            if environment is None:
                machine = replace(machine, environment=None, programs=None)
            found[interpreter] = machine if interpreter else with_interpreter(machine, None)
        elif interpreter not in found:
            found[interpreter] = with_interpreter(next(iter(found.values())), interpreter)
    machines = []
    for job in jobs:
        machine, system = (
            found[_interpreter(job, environment)],
            batch_system(job, environment or {}),
        )
        machines.append(nodes_of(system, machine) if system else machine)
    return machines


def _interpreter(job: Job, environment: Mapping[str, str] | None) -> PythonInstallation | None:
    """The Python that would run a job here; without an environment the one that runs this code."""
    given = environment or {}
    if job.interpreter is None:
        return running() if environment is None and not job.container else None
    if is_of_the_system(job.interpreter) and batch_system(job, given):
        return None
    try:
        found = read_interpreter(job.interpreter, home=given.get("HOME", ""))
    except InputError:
        return None
    python_path = job.environment.get("PYTHONPATH", given.get("PYTHONPATH")) or ""
    first = [os.path.join(job.folder, folder) for folder in python_path.split(":") if folder]
    return replace(found, folders=(*first, *found.folders))


def unknown_packages(jobs: Sequence[Job], platforms: Sequence[Target]) -> Iterator[Unknown]:
    """Report the jobs whose packages are unknown."""
    for job, platform in zip(jobs, platforms, strict=True):
        if job.is_program and platform.distributions is None:
            reason = (
                f"they are those of the image {job.container}; capture a target in it"
                if job.container
                else f"it is unknown here which Python `{job.program}` is; capture a target with it"
            )
            yield Unknown("which packages the job finds", reason, job.at)


def unknown_systems(jobs: Sequence[Job], environment: Mapping[str, str]) -> Iterator[Unknown]:
    """Report the jobs that do not run on this machine."""
    for job in jobs:
        if job.is_program and (system := batch_system(job, environment)):
            yield unknown_nodes(system, job)


def batch_system(job: Job, environment: Mapping[str, str]) -> str:
    """The launcher that runs a job on other machines; empty if none does."""
    known = ((name, launchers.of(name)) for name in job.launchers)
    return next(
        (
            name
            for name, launcher in known
            if launcher and launcher.set_on_nodes and launcher.set_on_nodes not in environment
        ),
        "",
    )


def nodes_of(system: str, machine: Target) -> Target:
    """What a machine that submits jobs shares with the nodes that run them."""
    nodes = replace(
        machine,
        shared_libraries=None,
        programs=None,
        gpus=None,
        driver="",
        cuda="",
        memory_bytes=None,
        shared_memory_bytes=None,
        cpus=None,
        processes=None,
        open_files=None,
        ports=None,
    )
    if machine.programs is None or system in machine.programs:
        return nodes
    return replace(with_interpreter(nodes, None), here=False, mounts=None, user=None)


def unknown_nodes(system: str, job: Job) -> Unknown:
    """Report that the nodes are unknown."""
    reason = f"{system} runs the job on other machines; describe them with --target"
    return Unknown("the GPUs, programs and limits of the job's nodes", reason, job.at)
