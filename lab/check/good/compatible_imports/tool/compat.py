"""What differs between versions."""

import sys

import torch

try:
    from typing import Literal
except ImportError:
    from typing_extensions import Literal

try:
    import tomllib
except ModuleNotFoundError:
    tomllib = None

try:
    from torch.optim.lr_scheduler import LRScheduler
except ImportError:
    from torch.optim.lr_scheduler import _LRScheduler as LRScheduler

if sys.version_info >= (3, 12):
    from itertools import batched
else:

    def batched(items, size):
        items = list(items)
        for start in range(0, len(items), size):
            yield tuple(items[start : start + size])


def compile_if_there(model):
    if hasattr(torch, "compile") and torch.cuda.is_available():
        return torch.compile(model)
    return model


if sys.platform == "win32":
    import msvcrt  # noqa: F401
else:
    import fcntl  # noqa: F401

__all__ = ["LRScheduler", "Literal", "batched", "compile_if_there", "tomllib"]
