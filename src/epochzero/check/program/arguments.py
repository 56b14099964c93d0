"""A command line against the parser that the program builds: `parse`.

The definitions come from reading the program (`ParserSpec`); nothing of the program is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from epochzero.check.program.parsers.model import ArgumentProblem, OptionSpec, Parsed, ParserSpec

__all__ = ["ArgumentProblem", "OptionSpec", "Parsed", "ParserSpec", "parse"]

# Imported when one is asked for: most jobs use one of them.
_READERS = {
    "argparse": "standard",
    "hf": "dataclasses",
    "click": "clicks",
    "absl": "absl",
    "fire": "fire",
    "hydra": "hydra",
    "lightning": "lightning",
}


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> Parsed:
    """What the parser makes of a command line.

    Args:
        spec: the parser as the program builds it.
        argv: the arguments without the script.
        folder: the working folder of the job, in which files that arguments or the parser name are
            looked for; None when there is none, and such files are Unknowns.
    """
    module = import_module(f"epochzero.check.program.parsers.{_READERS[spec.kind]}")
    parsed: Parsed = module.parse(spec, tuple(argv), folder)
    return parsed
