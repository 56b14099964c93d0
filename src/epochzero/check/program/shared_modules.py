"""Parsed files that a process shares with the checks that it forks.

Parsing takes a third of the time of a check of a large project. A process that forks checks stores the modules
that they parsed; the next check inherits them. A module is used only for the same text, so that it can never be
out of date.
"""

from __future__ import annotations

import ast
import gc
from contextlib import suppress
from typing import TypeAlias

from epochzero.check.program import binding, syntax
from epochzero.check.program.model import Module

MOST_TEXT = 2 << 20
"""Characters of source, about 50,000 lines; their trees take about 300 MB."""
MOST_DROPPED = 50
"""Modules that may be replaced before the memory that they take is released."""

ModuleKey: TypeAlias = tuple[str, str, str, tuple[int, int] | None]
"""Name, shown path, file, and version of Python, which determine a module together with its text."""

_stored: dict[ModuleKey, Module] = {}
_missed: list[ModuleKey] | None = None
_dropped = 0


def record_missed() -> list[ModuleKey]:
    """Record from now on which modules this process has to parse, in the list that is returned."""
    global _missed
    _missed = []
    return _missed


def find(key: ModuleKey, text: str) -> Module | None:
    """The stored module with this text; None if there is none."""
    module = _stored.get(key)
    if module is not None and module.text == text:
        return module
    if _missed is not None:
        _missed.append(key)
    return None


def store(key: ModuleKey, module: Module) -> None:
    """Store a module instead of an earlier one of its key, and what most rules need of its syntax.

    Modules that were stored first are dropped if there are too many.
    """
    global _dropped
    if module.tree is None:
        return
    _dropped += _stored.pop(key, None) is not None
    _stored[key] = module
    total = sum(len(module.text) for module in _stored.values())
    while total > MOST_TEXT:
        oldest = next(iter(_stored))
        total -= len(_stored.pop(oldest).text)
        _dropped += 1
    if _dropped > MOST_DROPPED:
        _release()
        for stored in _stored.values():
            _prepare(stored)
    elif key in _stored:
        _prepare(module)


def _prepare(module: Module) -> None:
    with suppress(RecursionError):
        code = syntax.code_of(module)
        _ = code.stored, code.classes, code.functions, code.imports, code.locals, code.names
        for node in (*code.of(ast.Module), *code.of(ast.FunctionDef)):
            binding.own_names(module, node)


def _release() -> None:
    """Release the memory of dropped modules, to which the caches by module still refer."""
    global _dropped
    _dropped = 0
    syntax.code_of.cache_clear()
    binding.own_names.cache_clear()
    binding._elsewhere.cache_clear()
    gc.unfreeze()
    gc.collect()
