"""Starts capturing or replaying in the process of a job; companions of `epochzero.injected.companions`.

Capturing and replaying install the same hooks, so that both observe the same course.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.run.replay.child.capturing import ProcessCapture
from epochzero.run.replay.child.replaying import REPLAY_VARIABLE, ProcessReplay

CAPTURE_VARIABLE = "EPOCHZERO_CAPTURE"
_begun: dict[int, Any] = {}


def begin_python(_: ModuleType, environment: Mapping[str, str]) -> None:
    """Intercept Python's sources of randomness and the end of the process."""
    if CAPTURE_VARIABLE in environment:
        here: Any = ProcessCapture(Path(environment[CAPTURE_VARIABLE]), environment)
    else:
        here = ProcessReplay(environment[REPLAY_VARIABLE], environment)
    _begun[os.getpid()] = here
    here.begin()


def begin_numpy(numpy_random: ModuleType, _: Mapping[str, str]) -> None:
    """Intercept NumPy's generators, once NumPy is imported."""
    if (here := _begun.get(os.getpid())) is not None:
        here.sources.watch_numpy(numpy_random)


def begin_torch(torch: ModuleType, _: Mapping[str, str]) -> None:
    """Follow the training, once torch is imported."""
    if (here := _begun.get(os.getpid())) is not None:
        here.sources.watch_torch(torch)
        here.follow(torch)
