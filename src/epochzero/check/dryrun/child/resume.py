"""How a job would go on from what it saved: the option of its own parser that says so."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence

__all__ = ["resuming"]

_RESUME = re.compile(
    r"--?(resume([-_]?from)?([-_]?(checkpoint|ckpt|path|file))?|continue([-_]training)?|restart"
    r"|load([-_]?from)?[-_]?(checkpoint|ckpt|path|file)|load)"
)


def resuming(
    parser: argparse.ArgumentParser | None, argv: Sequence[str], saved: Sequence[str]
) -> list[str]:
    """The arguments with which the job would go on; none where it has no option for it or saved nothing.

    Args:
        parser: of the job.
        argv: its arguments now.
        saved: the files that it saved, in order.
    """
    action = _option(parser) if parser is not None else None
    files = [path for path in saved if os.path.isfile(path)]
    if action is None or not files or any(word in action.option_strings for word in argv):
        return []
    name = action.option_strings[-1]
    if action.nargs == 0:
        return [*argv, name]
    return [*argv, name, files[-1]]


def _option(parser: argparse.ArgumentParser) -> argparse.Action | None:
    """The option to resume: one that is off, or that takes a path and has none."""
    for action in parser._actions:
        fitting = any(_RESUME.fullmatch(name) for name in action.option_strings)
        if (
            fitting
            and not action.default
            and not action.choices
            and action.type not in (int, float)
        ):
            return action
    return None
