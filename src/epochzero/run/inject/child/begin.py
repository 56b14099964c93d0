"""Begins the faults of a job in its process: those of files and connections at once, of steps with torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from epochzero.run.inject.child.files import replace_files, replace_saving
from epochzero.run.inject.child.network import replace_connections
from epochzero.run.inject.child.planned import Planned, planned
from epochzero.run.inject.child.steps import Steps

_faults: list[Planned] = []


def begin_python(_: ModuleType, environment: Mapping[str, str]) -> None:
    """Puts what may fail in the place of what the job would call."""
    _faults[:] = planned(environment)
    replace_files(_named("disk-full"), _named("slow-storage"))
    replace_connections(_named("network-drop"))


def begin_torch(torch: ModuleType, environment: Mapping[str, str]) -> None:
    """Counts steps, where a fault comes at one; has torch write where a disk may be full."""
    replace_saving(torch, _named("disk-full"))
    if any(fault.step is not None for fault in _faults):
        Steps(torch, _faults).count()


def _named(name: str) -> list[Planned]:
    return [fault for fault in _faults if fault.name == name]
