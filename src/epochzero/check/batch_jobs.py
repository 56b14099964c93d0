"""Jobs that a batch system or a cluster runs on its own nodes, checked on the machine that submits them.

The nodes see the folders, and environments of Python in them, of a machine that has the batch system's own
command; of any other they share nothing. GPUs, limits, programs and the system's Python are their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from epochzero import launchers
from epochzero.check.findings import Unknown
from epochzero.check.job.model import Job
from epochzero.check.target.machine import with_interpreter
from epochzero.check.target.model import Target


def batch_system(job: Job, environment: Mapping[str, str]) -> str:
    """The launcher that runs a job on other machines than this one; empty where none does."""
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
    """What a machine that submits jobs tells of the nodes that run them."""
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
    """That the nodes are not known."""
    reason = f"{system} runs the job on other machines than this one; --target says what they have"
    return Unknown("the GPUs, programs and limits of the job's nodes", reason, job.at)
