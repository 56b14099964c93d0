"""Finds a stand-in for DeepSpeed where the job's Python lacks it: `engine`, which is one process without ZeRO."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Optional

from epochzero.check.dryrun.child.frames import Roots

_HERE = os.path.dirname(os.path.abspath(__file__))


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last of the interpreter's finders. A library that looks for DeepSpeed finds none.

    Args:
        roots: of the user's code.
        assume: called with the assumption that it stands in.
        configured: called with the configuration of each engine.
    """

    def __init__(
        self,
        roots: Roots,
        assume: Callable[[str], None],
        configured: Callable[[dict[str, Any]], None],
    ) -> None:
        self._roots = roots
        self._assume = assume
        self._configured = configured

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """DeepSpeed, for the user's own code."""
        if name != "deepspeed" or not self._users():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the package and its modules."""
        self._assume("DeepSpeed is not installed: it is replaced by one process without ZeRO")
        engine = import_module("epochzero.check.dryrun.child.engine")
        for name, contents in engine.modules(self._configured).items():
            part = module
            for word in name.split(".")[1:]:
                full = f"{part.__name__}.{word}"
                part = sys.modules.setdefault(full, ModuleType(full))
                setattr(sys.modules[full.rpartition(".")[0]], word, part)
            vars(part).update(contents)

    def _users(self) -> bool:
        """Whether the import under way is written in the user's code."""
        frame: Any = sys._getframe(2)
        while frame and _importing(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and self._roots.holds(frame.f_code.co_filename)


def _importing(path: str) -> bool:
    return path.startswith((_HERE, "<frozen importlib")) or "importlib" in path
