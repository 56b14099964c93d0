"""Differences from the captured run that can prevent its failure, determined before anything runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.check.target import PythonInstallation, likely_modules, normalized, read_interpreter
from epochzero.check.target.packages import installed
from epochzero.errors import InputError
from epochzero.run.observers.snapshot import python_of, repository_of
from epochzero.run.replay.model import Capture

_MATTERS = {
    "python": "its own random generators and the order of operations in its libraries may differ",
    "torch": ("losses may differ in their last bits, and dropout and shuffling may draw different numbers; a "
"failure that depends on either may not occur"),
    "numpy": "its generators may draw different numbers",
}  # fmt: skip
_IN_IT = "the failure passed through it"
_SHORT = 10
OF_GPU = ("cuda", "gpu")
"""Names of versions that describe a GPU."""


def changed_since(
    capture: Capture, environment: Mapping[str, str], python: Path | None = None
) -> tuple[str, ...]:
    """Yield a sentence for each changed package, source file or data file, those in the traceback first.

    Args:
        capture: the captured run.
        environment: in which the job's interpreter is searched for.
        python: interpreter that will run the job; None for the job's own.
    """
    found = [
        *_packages(capture, environment, python),
        *_code(capture),
        *_repository(capture),
        *_files(capture),
    ]
    return tuple(sorted(found, key=lambda text: _IN_IT not in text))


def other_version(name: str, then: str, now: str) -> str:
    """Return the sentence about a changed version; ``now`` is empty for a removed package."""
    sentence = f"{name} is {now or 'not installed'}; it was {then}"
    return f"{sentence}: {_MATTERS[name]}" if name in _MATTERS else sentence


# Packages -----------------------------------------------------------------------------------------


def _packages(
    capture: Capture, environment: Mapping[str, str], python: Path | None
) -> Iterator[str]:
    variables = {**environment, **capture.variables}
    program = python or python_of(capture.command, variables)
    if program is None:
        return
    try:
        interpreter = read_interpreter(program, home=variables.get("HOME", ""))
    except InputError:
        return
    added = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    now = _versions(interpreter, [str(capture.directory / entry) for entry in added])
    others = []
    for name, then in capture.versions.items():
        if name in OF_GPU or (name in now and _agree(now[name], then)):
            continue
        sentence = other_version(name, then, now.get(name, ""))
        if name in _MATTERS:
            yield sentence
        elif name in now and _is_in(name, capture):
            yield f"{sentence}; {_IN_IT}"
        elif name in now:
            others.append(sentence)
    if others:
        yield "; ".join(others)


def _versions(interpreter: PythonInstallation, first: list[str]) -> dict[str, str]:
    """Versions by name of a distribution and of each of its modules, and of Python."""
    found: dict[str, str] = {}
    here = installed([*first, *interpreter.folders])
    for distribution in here.values():
        for module in likely_modules(distribution):
            found.setdefault(module, distribution.version)
    found |= {dist.name.replace("-", "_"): dist.version for dist in here.values()}
    if interpreter.version:
        found["python"] = ".".join(map(str, interpreter.version))
    return found


def _agree(now: str, then: str) -> bool:
    """Whether two versions are equal; a distribution may have more components than its module."""
    first, second = now.partition("+")[0], then.partition("+")[0]
    return first == second or first.startswith(second + ".")


def _is_in(name: str, capture: Capture) -> bool:
    """Whether the traceback contains a package."""
    folders = {normalized(part) for path in capture.failure.through for part in Path(path).parts}
    return normalized(name) in folders


# Code and data ------------------------------------------------------------------------------------


def _code(capture: Capture) -> Iterator[str]:
    began = capture.ended - capture.elapsed_s
    for file in capture.code:
        path = str(file["path"])
        passed = f"; {_IN_IT}" if path in capture.failure.through else ""
        now = _digest(Path(path))
        if not now:
            yield f"{path}, a source file of the job, no longer exists{passed}"
        elif now != file["sha256"]:
            yield f"{path} has changed{passed or '; the failure did not pass through it'}"
        elif file["modified"] > began:
            yield f"{path} changed while the job was running{passed}"


def _repository(capture: Capture) -> Iterator[str]:
    commit, changes = repository_of(capture.directory) if capture.directory.is_dir() else ("", "")
    same = all(_digest(Path(str(file["path"]))) == file["sha256"] for file in capture.code)
    but = "; the files that the job loaded are unchanged" if same and capture.code else ""
    if capture.commit and commit != capture.commit:
        was = capture.commit[:_SHORT]
        yield f"the code is at commit {commit[:_SHORT] or 'none'}; it was at {was}{but}"
    elif capture.changes != (hashlib.sha256(changes.encode()).hexdigest() if changes else ""):
        yield f"uncommitted changes of the code differ{but}"


def _files(capture: Capture) -> Iterator[str]:
    for file in capture.files:
        path = Path(str(file["path"]))
        try:
            size = path.stat().st_size
        except OSError:
            yield f"{path} was read by the job and no longer exists: restore it, or create a link to its new location"
            continue
        if size != file["bytes"]:
            yield f"{path} has {size:,} bytes; it had {file['bytes']:,}"
        elif "sha256" in file and _digest(path) != file["sha256"]:
            yield f"the content of {path} has changed"


def _digest(path: Path) -> str:
    """SHA-256 of a file; empty if it cannot be read."""
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""
