"""What of a dry run other jobs use in their process: companions of `epochzero.injected.companions`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType

from epochzero.check.dryrun.child import guard
from epochzero.check.dryrun.child.frames import Roots

_GPUS = 8
_GPU = {"model": "NVIDIA A100", "memory_bytes": 80 << 30, "capability": (8, 0)}


def hold_back(_: ModuleType, environment: Mapping[str, str]) -> None:
    """Redirects what the job writes, where nothing else contains it."""
    if guard.SCRATCH_VARIABLE in environment:
        guard.install(environment[guard.SCRATCH_VARIABLE], lambda _: None, lambda _: True)


def stay_on_cpu(_: ModuleType, __: Mapping[str, str]) -> None:
    """What the job puts on a GPU stays on the CPU, with true values."""
    from epochzero.injected.gpus import cpu_execution

    cpu_execution.install([_GPU] * _GPUS, Roots([os.getcwd()]).holds, lambda _: None)
