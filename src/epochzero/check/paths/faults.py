"""Faults in the data files that the program reads and that exist on this machine."""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary

from epochzero.check.paths.accesses import Access, is_true
from epochzero.check.paths.analysis import InputFile, PathAnalysis, analyze_paths
from epochzero.check.paths.contents import FileFault, ReadMethod, format_of, inspect
from epochzero.check.paths.empty_lists import failing_use
from epochzero.check.paths.pretrained import inspect_pretrained
from epochzero.check.program.counted_loops import leaves
from epochzero.check.program.events import Situation, argument
from epochzero.check.program.model import Program
from epochzero.check.program.reachability import Reach
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant
from epochzero.check.target.model import Target
from epochzero.file_access import is_folder

MOST_FILES = 200
_MOST_CLASSES = 20
_MOST_NAMES = 2000
_LISTS = ("os.listdir", "pathlib.Path().iterdir")
_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
_ASKS_BLANK = re.compile(r"^\w+(\.r?strip\(\))?$")
_SKIPS_BLANK = re.compile(r"^if not \w+(\.r?strip\(\))?:\s*continue$")
"""Matches code that skips a blank line."""
_CHANGES = [
    "sep",
    "delimiter",
    "header",
    "names",
    "skiprows",
    "comment",
    "quoting",
    "quotechar",
    "on_bad_lines",
    "error_bad_lines",
    "engine",
    "lineterminator",
    "escapechar",
    "dialect",
    "thousands",
    "skipfooter",
    "nrows",
    "chunksize",
    "compression",
]
"""Options of ``pandas.read_csv`` that change how a line of a table is parsed."""


_ITERATIONS = (ast.For, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Faulty:
    """A file and its fault.

    Attributes:
        access: call that opens the file.
        shown: path, as text for users.
        fault: the fault.
        at: where the job would fail.
        sure: whether the file is certainly read and reading it certainly fails.
    """

    access: Access
    shown: str
    fault: FileFault
    at: Situation
    sure: bool


def encoding_of(access: Access) -> str | None:
    """The encoding in which text is read; None if unknown."""
    given = argument(access.call, 3 if access.call.name == "builtins.open" else None, "encoding")
    if given is None or given == Constant(None):
        return "utf-8"
    return given.value if isinstance(given, Constant) and isinstance(given.value, str) else None


def is_plain(access: Access) -> bool:
    """Whether a table is read line by line, with commas and a header."""
    call = access.call
    return call.complete and len(call.arguments) < 2 and not set(_CHANGES) & call.keywords.keys()


def _faults(program: Program, paths: PathAnalysis) -> Iterator[Faulty]:
    seen: set[tuple[str, str, str]] = set()
    left = MOST_FILES
    for opened in paths.opened:
        at = (opened.access.parsed or opened.access.call).at
        read = opened.local, opened.access.format, opened.access.function
        if read in seen or opened.access.call.at.handled:
            continue
        seen.add(read)
        for local, fault in _look(opened, left):
            left -= 1
            if fault and not at.handled:
                shown = paths.platform.shown(local)
                reached = at.certain or _reads_all(program, opened.access)
                sure = opened.sure and fault.sure and reached
                found_fault = Faulty(opened.access, shown, fault, at, sure)
                yield from (
                    _of_list(program, found_fault, opened)
                    if fault.kind == "no-item"
                    else (found_fault,)
                )
        if left <= 0:
            return


def _reads_all(program: Program, access: Access) -> bool:
    """Whether a loop over an open file certainly parses each non-blank line."""
    call = access.parsed
    if call is None or access.format != "jsonl" or call.at.via != access.call.at.via:
        return False
    skips = any(
        call.name == "builtins.next" or call.name.endswith("readline") for call in program.calls
    )
    if skips or Reach.of(program).severity(call.at) != "error":
        return False
    code = code_of(program.by_path[call.at.place.path])
    around = code.around_line(call.at.place.line, *_ITERATIONS)
    tests = [node for loop in around for node in ast.walk(loop) if isinstance(node, ast.If)]
    asked = [
        ast.unparse(value)
        for loop in around
        for part in getattr(loop, "generators", ())
        for value in part.ifs
    ]
    return (
        not any(map(leaves, around))
        and all(_SKIPS_BLANK.search(ast.unparse(test)) for test in tests)
        and all(map(_ASKS_BLANK.search, asked))
    )


def _look(opened: InputFile, most: int) -> Iterator[tuple[str, FileFault | None]]:
    """The inspected files, each with its fault."""
    access, local = opened.access, opened.local
    if access.does == "globs":
        fault = _no_match(opened)
        if fault:
            yield opened.path, fault
    elif is_folder(local):
        if access.format == "classes":
            yield from islice(_classes(local), most)
        elif access.format == "pretrained":
            yield from islice(inspect_pretrained(access.call, local), most)
        elif access.call.name in _LISTS and not _names(local):
            yield (local, FileFault("no-item", "is empty", "an empty list is returned", sure=False))
    else:
        yield local, inspect(local, _reading(access, local))


def _of_list(program: Program, faulty: Faulty, opened: InputFile) -> Iterator[Faulty]:
    """An empty list of files: an error where one of its items is needed."""
    if use := failing_use(program, opened.access.call):
        at, error = use
        fault = FileFault("empty", faulty.fault.what, error)
        yield replace(faulty, fault=fault, at=at, sure=opened.sure)
    elif opened.access.does == "globs":
        yield replace(faulty, fault=replace(faulty.fault, kind="empty"))


def _reading(access: Access, local: str) -> ReadMethod:
    encoding = encoding_of(access)
    ignores = "errors" in access.call.keywords or "encoding_errors" in access.call.keywords
    strict = encoding is not None and not ignores and access.call.complete
    format_name = (
        "jsonl" if access.format == "json" and "lines" in access.call.keywords else access.format
    )
    if access.format in ("csv", "tsv", "text") and "compression" in access.call.keywords:
        format_name = ""
    allowed = is_true(argument(access.call, 2, "allow_pickle"))
    pickles = access.call.name != "numpy.load" or allowed is not False
    return ReadMethod(
        format_of(local, format_name), encoding or "utf-8", strict, is_plain(access), pickles
    )


def _no_match(opened: InputFile) -> FileFault | None:
    """A pattern that matches nothing in its directory."""
    fixed = posixpath.relpath(opened.path, opened.local)
    name = opened.access.call.name.rpartition(".")[2]
    if ".." in fixed.split("/") or re.search(r"[\[\]{}]", fixed):
        return None
    pattern = f"**/{fixed}" if name == "rglob" else fixed
    try:
        found = any(True for _ in Path(opened.local).glob(pattern))
    except (OSError, ValueError, NotImplementedError, IndexError):
        return None
    error = "an empty list is returned, and the job continues without data"
    return None if found else FileFault("no-item", "matches no file", error, sure=False)


def _classes(folder: str) -> Iterator[tuple[str, FileFault | None]]:
    """The images of a directory with one subdirectory per class: the first and last of each class."""
    kinds = sorted(name for name in _names(folder) if is_folder(os.path.join(folder, name)))
    if not kinds:
        error = f"FileNotFoundError: Couldn't find any class folder in {folder}."
        yield folder, FileFault("empty", "has no class directories", error)
    for kind in (*kinds[: _MOST_CLASSES // 2], *kinds[_MOST_CLASSES // 2 :][-_MOST_CLASSES // 2 :]):
        inside = os.path.join(folder, kind)
        names = sorted(_names(inside))
        images = [name for name in names if name.lower().endswith(_IMAGES)]
        deeper = any(is_folder(os.path.join(inside, name)) for name in names[:_MOST_CLASSES])
        if not images and not deeper and len(names) < _MOST_NAMES:
            error = f"FileNotFoundError: Found no valid file for the classes {kind}."
            yield inside, FileFault("empty", "has no images", error)
        for name in dict.fromkeys((*images[:3], *images[-3:])):
            file = os.path.join(inside, name)
            fault = inspect(file, ReadMethod(format_of(file, "image")))
            yield file, fault


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        return []


_FOUND: WeakKeyDictionary[PathAnalysis, tuple[Faulty, ...]] = WeakKeyDictionary()


def faults_of(program: Program, target: Target) -> tuple[Faulty, ...]:
    """The faults of the files that a program reads; inspected once for all rules."""
    paths = analyze_paths(program, target)
    if paths not in _FOUND:
        _FOUND[paths] = tuple(_faults(program, paths))
    return _FOUND[paths]
