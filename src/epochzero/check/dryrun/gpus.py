"""The GPUs that a dry run simulates: those of the target, or a common one if they are unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from epochzero.check.findings import Unknown
from epochzero.check.program.model import Program
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU, Target

DEFAULT = "A100 80GB"
_ASKS = re.compile(r"\bcuda\b")
_TORCH = frozenset(["accelerate", "lightning", "pytorch_lightning", "torch", "transformers"])
_OTHERS = {"tensorflow": "TensorFlow", "jax": "JAX", "flax": "JAX", "keras": "Keras"}
_KERAS_ON_TORCH = re.compile(r"KERAS_BACKEND\W+torch\b")


def pretended_gpus(
    program: Program, target: Target, environment: Mapping[str, str]
) -> tuple[GPU, ...]:
    """The GPUs of a node that the program would use; empty if it uses none.

    A machine without a GPU is assumed not to be the platform of a program that uses ``cuda``, but only the
    machine that runs the check.
    """
    if not _uses_torch(program, target, environment):
        return ()
    if target.gpus:
        known = all(gpu.capability for gpu in target.gpus)
        return target.gpus if known else ()
    texts = (module.text for module in program.modules.values())
    unknown = target.gpus is None or target.here
    return (presets()[DEFAULT],) if unknown and _asks(texts) else ()


def not_pretended(
    program: Program, target: Target, environment: Mapping[str, str]
) -> tuple[Unknown, ...]:
    """What is unknown about a program that uses the target's GPUs without torch."""
    if not target.gpus or _uses_torch(program, target, environment):
        return ()
    name = next((_OTHERS[other] for other in _OTHERS if other in _imported(program)), "")
    reason = f"GPUs cannot be simulated for {name}; the job runs on the CPU, with real values"
    return (
        (Unknown("GPU memory, and errors that occur only on a GPU", reason, program.job.at),)
        if name
        else ()
    )


def _uses_torch(program: Program, target: Target, environment: Mapping[str, str]) -> bool:
    """Whether the program uses torch, if only as the backend of Keras."""
    imported = _imported(program)
    if imported & _TORCH or "keras" not in imported:
        return bool(imported & _TORCH)
    seen = {**environment, **(target.environment or {}), **program.job.environment}
    texts = (module.text for module in program.modules.values())
    return seen.get("KERAS_BACKEND") == "torch" or any(map(_KERAS_ON_TORCH.search, texts))


def _imported(program: Program) -> set[str]:
    return {event.module.partition(".")[0] for event in program.imports}


def _asks(texts: Iterable[str]) -> bool:
    return any(_ASKS.search(text) for text in texts)
