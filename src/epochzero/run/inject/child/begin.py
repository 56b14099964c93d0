"""Starts the faults of a job in its process: those of files and connections at once, those of steps with torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from epochzero.run.inject.child.faults import PlannedFault, planned
from epochzero.run.inject.child.files import replace_files, replace_saving
from epochzero.run.inject.child.network import replace_connections
from epochzero.run.inject.child.steps import Steps

_faults: list[PlannedFault] = []


def begin_python(_: ModuleType, environment: Mapping[str, str]) -> None:
    """Replace the functions that may fail."""
    _faults[:] = planned(environment)
    replace_files(_named("disk-full"), _named("slow-storage"))
    replace_connections(_named("network-drop"))


def begin_torch(torch: ModuleType, environment: Mapping[str, str]) -> None:
    """Count steps if a fault is due at one; route torch.save through Python if a disk may be full."""
    replace_saving(torch, _named("disk-full"))
    if any(fault.step is not None for fault in _faults):
        Steps(torch, _faults).count()


def _named(name: str) -> list[PlannedFault]:
    return [fault for fault in _faults if fault.name == name]
