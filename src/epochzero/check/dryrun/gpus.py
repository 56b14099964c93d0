"""Which GPUs a dry run pretends: those of the target, or a common one where none are known."""

from __future__ import annotations

import re
from collections.abc import Iterable

from epochzero.check.program.model import Program
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU, Target

__all__ = ["DEFAULT", "pretended_gpus"]

DEFAULT = "A100 80GB"
_ASKS = re.compile(r"\bcuda\b")
_TORCH = frozenset(
    ["accelerate", "keras", "lightning", "pytorch_lightning", "torch", "transformers"]
)


def pretended_gpus(program: Program, target: Target) -> tuple[GPU, ...]:
    """The GPUs of a node that the program would use; none where it has none to use.

    A machine without a GPU is not taken for the platform of a program that names ``cuda``: it is where
    the check runs.
    """
    if not _imported(program) & _TORCH:
        return ()
    if target.gpus:
        known = all(gpu.capability for gpu in target.gpus)
        return target.gpus if known else ()
    texts = (module.text for module in program.modules.values())
    unknown = target.gpus is None or target.here
    return (presets()[DEFAULT],) if unknown and _asks(texts) else ()


def _imported(program: Program) -> set[str]:
    return {event.module.partition(".")[0] for event in program.imports}


def _asks(texts: Iterable[str]) -> bool:
    return any(_ASKS.search(text) for text in texts)
