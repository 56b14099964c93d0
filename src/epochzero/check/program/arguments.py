"""`parse`: apply the parser that the program builds to a command line.

The definitions come from reading the program (`ParserSpec`); no code of the program is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from epochzero.check.program.parsers.model import ParsedCommand, ParserSpec

# Imported on first use: most jobs use one of them.
_READERS = {
    "argparse": "standard",
    "hf": "dataclasses",
    "click": "clicks",
    "absl": "absl",
    "fire": "fire",
    "hydra": "hydra",
    "lightning": "lightning",
}


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Return the result of the parser for a command line.

    Args:
        spec: the parser as the program builds it.
        argv: the arguments without the script.
        folder: the job's working directory, in which files that arguments or the parser name are searched; if
            None, such files are reported as `Unknown`.
    """
    module = import_module(f"epochzero.check.program.parsers.{_READERS[spec.kind]}")
    parsed: ParsedCommand = module.parse(spec, tuple(argv), folder)
    return parsed
