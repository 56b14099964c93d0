"""Stands in for functions of torch so that the job does not notice.

A function of Python keeps its identity and gets other code: `torch.nn.TransformerEncoderLayer` asks whether
its activation *is* relu, and takes another path where it is not; pickle asks the same of every
function that a model holds. A function of C is replaced by an object that equals it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


_HERE = str(Path(__file__).absolute().parents[2]) + os.sep
"""All of ours that runs in a job: what watches and what captures."""


def shorten_traceback(error: BaseException) -> None:
    """Takes our lines out of a traceback, but the first: Python adds that by itself."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        if entry.tb_next.tb_frame.f_code.co_filename.startswith(_HERE):
            entry.tb_next = entry.tb_next.tb_next
        else:
            entry = entry.tb_next


def _code(*args: Any, **kwargs: Any) -> Any:
    stand_in: Any = 0.5
    shorten: Any = 0.25
    try:
        return stand_in(*args, **kwargs)
    except BaseException as error:
        shorten(error)
        raise


def give_code(function: types.FunctionType, wrap: Wrap) -> Callable[[], None]:
    """Lets a function without closure run as ``wrap(function)`` would; returns what undoes it."""
    before = function.__code__
    original = types.FunctionType(
        before, function.__globals__, function.__name__, function.__defaults__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    stand_in = wrap(original)
    ours = {0.5: stand_in, 0.25: shorten_traceback}
    constants = tuple(ours.get(value, value) for value in _code.__code__.co_consts)
    attributes = dict(vars(function))
    signature = inspect.signature(function)
    function.__code__ = _code.__code__.replace(co_consts=constants, co_name=before.co_name)
    function.__signature__ = signature  # type: ignore[attr-defined]

    def undo() -> None:
        function.__code__ = before
        function.__dict__.clear()
        function.__dict__.update(attributes)

    return undo


class FunctionWrapper:
    """A function or method of C with something around it.

    It equals what it replaces, so that a table of functions finds it under either, and pickles as the
    name that it has in its module.

    Args:
        function: what is replaced.
        module, name: where it is found by others.
        wrap: what is put around it.
    """

    def __init__(self, function: Any, module: str, name: str, wrap: Wrap) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._named = (module, name)
        self._wrapped = wrap(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls what was put around it."""
        try:
            return self._wrapped(*args, **kwargs)
        except BaseException as error:
            shorten_traceback(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method."""
        return self if instance is None else types.MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return other is self or other == self._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __reduce__(self) -> Any:
        module, name = self._named
        return getattr, (_Module(module), name)


class _Module:
    """Pickles as the module of that name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Any:
        return importlib.import_module, (self._name,)
