"""Whether numbers that nothing seeds were drawn where the job failed: another run draws others, and may pass.

The job's program is read, not run; ``unseeded.toml`` holds what draws and what seeds. A draw counts within
the loop in which the job failed, or else within the function, and in what is called from there: what was
drawn before, such as the first weights, was the same for all steps that went well.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.diagnose import Diagnosis
from epochzero.run.records.model import Start

if TYPE_CHECKING:
    from epochzero.check.program.events import LibraryCall
    from epochzero.check.program.model import Program


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class _Generator:
    """One kind of generator; see the head of ``unseeded.toml``."""

    draws: re.Pattern[str]
    seeds: re.Pattern[str]
    shared: bool


@dataclass(frozen=True, slots=True)
class _Catalogue:
    categories: frozenset[str]
    everything: re.Pattern[str]
    generators: tuple[_Generator, ...]


def unseeded(diagnosis: Diagnosis, started: Start) -> str:
    """The unseeded draw where the job failed, in a sentence; empty if there is none or it is unknown.

    Raises:
        InputError: the command runs no Python that can be read.
    """
    frame = diagnosis.user_frame
    if diagnosis.category not in _catalogue().categories or frame is None or not frame.line:
        return ""
    from epochzero.check.launch import read_job
    from epochzero.check.program.interpreter import read_program
    from epochzero.check.target.model import Target

    folder = Path(started.folder)
    for job in read_job(started.command, folder).jobs:
        if not job.is_program:
            continue
        program = read_program(job, Target("where it ran"))
        if found := _drawn(program, folder / frame.file, frame.line):
            place = found.at.place
            return f"{place.path}:{place.line} uses {found.name} without a seed: another run draws different numbers."
    return ""


@cache
def _catalogue() -> _Catalogue:
    data = tomllib.loads(
        files("epochzero.run.retry").joinpath("unseeded.toml").read_text(encoding="utf-8")
    )
    return _Catalogue(
        frozenset(data["categories"]),
        re.compile(data["everything"]),
        tuple(
            _Generator(
                re.compile(generator["draws"]), re.compile(generator["seeds"]), generator["shared"]
            )
            for generator in data["generators"]
        ),
    )


def _drawn(program: Program, file: Path, line: int) -> LibraryCall | None:
    """The draw from an unseeded generator that is the last before the line that failed, or the next."""
    module = next((found for found in program.modules.values() if found.file == file), None)
    if module is None or module.tree is None:
        return None
    around = _around(module.tree, line)
    open_ = [
        generator
        for generator in _catalogue().generators
        if not _is_seeded(generator, program.calls)
    ]
    drawn = [
        call
        for call in program.calls
        if any(generator.draws.search(call.name) for generator in open_)
        and any(
            place.path == module.path and place.line in around
            for place in (*call.at.via, call.at.place)
        )
    ]
    return min(
        drawn,
        key=lambda call: (call.at.place.line > line, abs(call.at.place.line - line)),
        default=None,
    )


def _is_seeded(generator: _Generator, calls: Sequence[LibraryCall]) -> bool:
    """Whether anything in the program seeds such a generator, or may."""
    from epochzero.check.program.events import argument
    from epochzero.check.program.python_errors import is_none

    catalogue = _catalogue()
    for call in calls:
        if generator.seeds.search(call.name):
            seed = argument(call, 0, "seed")
            # Arguments that are not known may hold one.
            if not call.complete or (seed is not None and not is_none(seed)):
                return True
        elif (
            generator.shared
            and catalogue.everything.search(call.name)
            and not any(other.seeds.search(call.name) for other in catalogue.generators)
        ):
            return True
    return False


def _around(tree: ast.Module, line: int) -> range:
    """The lines of the outermost loop around a line in its function, else of the function."""
    function, loop = None, None
    for node in _path_to(tree, line):
        if isinstance(node, _FUNCTIONS):
            function, loop = node, None
        elif isinstance(node, _LOOPS) and loop is None:
            loop = node
    around = loop or function
    return range(around.lineno, (around.end_lineno or line) + 1) if around else range(0)


def _path_to(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes around a line, the outermost first."""
    for inner in ast.iter_child_nodes(node):
        first, last = getattr(inner, "lineno", None), getattr(inner, "end_lineno", None)
        if first is not None and last is not None and first <= line <= last:
            yield inner
            yield from _path_to(inner, line)
