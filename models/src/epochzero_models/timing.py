"""Measured times."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def milliseconds(run: Callable[[], object], device: torch.device) -> float:
    """Return how long a call took, including the work that it left to a GPU."""
    began = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - began)
