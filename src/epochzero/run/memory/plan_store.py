"""Stores, in a small JSON file, the plan that a job ended with, for its next run."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from epochzero.run.memory.batches import tensors_of
from epochzero.run.memory.limit import limit_here
from epochzero.run.memory.plan import StepPlan

_MOST_PARTS = 1 << 20


def key_of(model: nn.Module, batch: Any) -> str:
    """Return a key for the model's structure, the shapes of a batch and the available memory."""
    structure = [
        *(
            (name, str(tuple(value.shape)), str(value.dtype))
            for name, value in model.named_parameters()
        ),
        *((name, type(module).__name__) for name, module in model.named_modules()),
        *((path, str(tuple(tensor.shape))) for path, tensor in tensors_of(batch)),
        _memory(),
    ]
    return hashlib.sha256(json.dumps(structure).encode()).hexdigest()[:24]


def recall(file: Path, key: str) -> StepPlan:
    """Return the stored plan; the plan that changes nothing if none is stored or it is invalid."""
    match _read(file).get(key):
        case {"parts": int(parts), "checkpoint": bool(checkpoint), "offload": bool(moved)}:
            if 1 <= parts <= _MOST_PARTS:
                return StepPlan(int(parts), checkpoint, moved)
    return StepPlan()


def remember(file: Path, key: str, plan: StepPlan) -> None:
    """Store a plan. A file that cannot be written is ignored."""
    plans = _read(file) | {key: asdict(plan)}
    begun = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        begun.write_text(json.dumps(plans, indent=1) + "\n", encoding="utf-8")
        begun.replace(file)


def _read(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _memory() -> int:
    if (limit := limit_here()) is not None:
        return limit
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return 0
