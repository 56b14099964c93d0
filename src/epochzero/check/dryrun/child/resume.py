"""How a job would go on from what it saved: an option of its own, or a variable that it asks for.

Options are those of `argparse`, which Transformers' parser of dataclasses is one of, and of click, and the
keys of a configuration that Hydra composes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_RESUME = re.compile(
    r"-{0,2}(resume([-_]?from)?([-_]?(checkpoint|ckpt|path|file))?|continue([-_]training)?|restart"
    r"|load([-_]?from)?[-_]?(checkpoint|ckpt|path|file)|load|ckpt[-_]path)"
)
_VARIABLE = re.compile(r"(\w+_)?RESUME(_FROM)?(_(CHECKPOINT|CKPT|PATH|FILE))?")
_NO_PATHS = ("integer", "float", "choice")
"""Types of click's options."""


class ResumeOption(NamedTuple):
    """An option that the job has and was not given.

    Attributes:
        names: of it, the longest last.
        flag: whether it takes no value.
        is_key: whether it is one of a configuration, ``a.b=value``.
    """

    names: Sequence[str]
    flag: bool
    is_key: bool = False

    def given(self, path: str) -> Sequence[str]:
        """The arguments that give it, with a path where it takes one."""
        name = self.names[-1]
        if self.is_key:
            return [f"{name}=true" if self.flag else f"{name}='{path}'"]
        return [name] if self.flag else [name, path]


class Way(NamedTuple):
    """How to go on: the job's arguments, and variables that are set besides."""

    argv: Sequence[str]
    variables: dict[str, str]


def way(
    options: Iterable[ResumeOption], unset: Iterable[str], argv: Sequence[str], saved: Sequence[str]
) -> Way | None:
    """How the job would go on; None where it has no way to or saved nothing.

    Args:
        options: of the job's parsers.
        unset: variables that it asked for and that are not set.
        argv: its arguments now.
        saved: the files and folders that it saved, in order.
    """
    there = [path for path in saved if os.path.exists(path)]
    if not there:
        return None
    for option in options:
        if any(map(_RESUME.fullmatch, option.names)) and not set(option.names) & set(argv):
            return Way([*argv, *option.given(there[-1])], {})
    for name in filter(_VARIABLE.fullmatch, unset):
        return Way(argv, {name: there[-1]})
    return None


def options_of_argparse(parser: Any) -> Iterator[ResumeOption]:
    """The options that are off, or that take a path and have none."""
    for action in parser._actions:
        is_open = not action.default and not action.choices and action.type not in (int, float)
        if action.option_strings and is_open:
            yield ResumeOption(action.option_strings, action.nargs == 0)


def options_of_click(command: Any) -> Iterator[ResumeOption]:
    """The same of a command of click."""
    for parameter in command.params:
        is_open = not (isinstance(parameter.default, (str, int, float)) and parameter.default)
        is_path = parameter.type.name not in _NO_PATHS
        if parameter.param_type_name == "option" and is_open and is_path:
            yield ResumeOption(sorted(parameter.opts, key=len), parameter.is_flag)


def options_of_hydra(config: Any, above: str = "") -> Iterator[ResumeOption]:
    """The keys of a configuration that are off, or have nothing where a path may stand."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from options_of_hydra(value, f"{above}{key}.")
        elif value is None or value is False or value == "":
            yield ResumeOption((str(key), f"{above}{key}"), value is False, is_key=True)


def path_of(file: Any) -> str:
    """Where a file lies that is given as a path or open; empty where it lies nowhere."""
    path = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.path.abspath(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else ""


def noting_what_is_not_set(note: Callable[[str], object]) -> None:
    """Tell of each environment variable that is asked for and not set."""
    kind: Any = type(os.environ)
    look_up = kind.__getitem__

    def noted(environment: Any, name: Any) -> Any:
        try:
            return look_up(environment, name)
        except KeyError:
            note(name)
            raise

    kind.__getitem__ = noted
