"""The job's own modules: the search by Python's rules, and their syntax trees."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.launch.model import CommandSource, Job
from epochzero.check.program import shared_modules
from epochzero.check.program.model import Module
from epochzero.check.target.model import Target
from epochzero.errors import InputError, reading
from epochzero.file_access import exists, is_file, is_folder, open_file, readable

LARGEST_BYTES = 1 << 20
"""Limit of a source file, about 25,000 lines; its tree takes 250 times as much memory."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_FIRST = frozenset(sys.builtin_module_names) | {
    "os",
    "codecs",
    "io",
    "abc",
    "site",
    "stat",
    "zipimport",
}
"""Modules that are built in, or loaded before the job starts."""
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_MOST_ENTRIES = 200
"""Limit of the directory entries that are inspected for Python files."""


class Modules:
    """Find and parse the modules of a job.

    Args:
        job: the job.
        target: its Python determines the syntax; its distributions determine which directories without
            ``__init__.py`` are hidden by an installed package.
    """

    def __init__(self, job: Job, target: Target) -> None:
        self.job = job
        self.target = target
        self.path: list[Path] = list(_first_on_path(job))
        self.loaded: dict[str, Module] = {}
        self.unknowns: list[Unknown] = []
        self._found: dict[str, Path | None] = {}
        self._appended = 0

    def entry(self) -> Module:
        """Return the module that the job runs.

        Raises:
            InputError: the file does not exist, cannot be read, or is too large.
        """
        if self.job.code is not None:
            return self.loaded.setdefault("__main__", self._given(self.job.code))
        file = self.job.script
        if file is not None and file.is_dir():
            file = file / "__main__.py"
        if file is None:
            found = self.find(self.job.module)
            if found is None:
                raise InputError(f"{self.job.module}: no such module in {self.job.folder}")
            file = found / "__main__.py" if found.is_dir() else found
            if file.name == "__init__.py":
                file = file.with_name("__main__.py")
        module = self._read("__main__", file)
        self.loaded["__main__"] = module
        return module

    def load(self, name: str) -> Module | None:
        """Return the module of a dotted name, empty if it cannot be read; None if it is a directory or not part of the job."""
        if name not in self.loaded:
            file = self.find(name)
            if file is None or file.is_dir():
                return None
            try:
                self.loaded[name] = self._read(name, file)
            except InputError as error:
                shown = _relative(file, self.job.base)
                self.loaded[name] = Module(name, shown, file, "", None)
                reason = str(error).removeprefix(f"{shown}: ")
                self.unknowns.append(Unknown(f"what {name} does", reason, SourceLocation(shown)))
        return self.loaded[name]

    def find(self, name: str) -> Path | None:
        """Return the file of a module of the job, or the directory of a namespace package.

        Returns:
            None if no part of the job has this name.
        """
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def add_path(self, folder: str, first: bool) -> None:
        """Apply ``sys.path.insert`` or ``append``; names that were not found are searched again."""
        added = Path(folder) if folder.startswith("/") else self.job.folder / (folder or ".")
        self.path.insert(0 if first else len(self.path), added)
        self._appended += not first
        self._found = {name: file for name, file in self._found.items() if file is not None}

    def _search(self, name: str) -> Path | None:
        parent, _, last = name.rpartition(".")
        if not last.isidentifier():
            return None
        if parent:
            package = self.find(parent)
            if package is None or (package.is_file() and package.name != "__init__.py"):
                return None
            folder = package if package.name != "__init__.py" else package.parent
            return _in(folder, last) or _namespace(folder, last)
        if last in _FIRST:
            return None
        # Installed modules come after the script's directory, and before what the program appends.
        installed = last in sys.stdlib_module_names or self._is_installed(last)
        for folder in self.path[: len(self.path) - self._appended] if installed else self.path:
            if file := _in(folder, last):
                return file if self._is_own(file) else None
        return self._top_level_namespace(last) or self._installed_from_here(last)

    def _top_level_namespace(self, name: str) -> Path | None:
        """A directory without ``__init__.py``, which an installed module of the same name would hide."""
        if name in sys.stdlib_module_names or self._is_installed(name):
            return None
        for folder in self.path:
            if (found := _namespace(folder, name)) and self._is_own(found):
                return found
        return None

    def _installed_from_here(self, name: str) -> Path | None:
        """A package of the job's project that is installed from its directory (``pip install -e .``)."""
        if self.target.distributions is not None and not self._is_installed(name):
            return None
        if name in sys.stdlib_module_names:
            return None
        for root in self._projects():
            for folder in (root, root / "src"):
                if (file := _in(folder, name)) and self._is_own(file):
                    return file
        return None

    def _projects(self) -> Iterator[Path]:
        start = self.job.folder if self.job.script is None else self.job.script.parent
        for folder in (start, *start.parents):
            if any(is_file(folder / name) for name in _PROJECT_FILES):
                yield folder
            if folder == self.job.folder or exists(folder / ".git") or not readable(folder.parent):
                return

    def _is_installed(self, name: str) -> bool:
        distributions = self.target.distributions or {}
        return any(
            name in (distribution.modules or ()) for distribution in distributions.values()
        ) or (name.lower().replace("_", "-") in distributions)

    def _is_own(self, file: Path) -> bool:
        return not _INSTALLED.intersection(file.parts)

    def _read(self, name: str, file: Path) -> Module:
        """Read a module and parse it for the target's Python, as far as this Python can.

        Raises:
            InputError: it cannot be read.
        """
        shown = _relative(file, self.job.base)
        with reading(shown), open_file(file) as stream:
            data = stream.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise InputError(f"{shown} is larger than {LARGEST_BYTES >> 20} MB")
        try:
            return self._module(name, shown, file, decoded(data))
        except SyntaxError as error:
            return Module(name, shown, file, data.decode("utf-8", "replace"), None, error)

    def source(self, file: Path) -> Module | None:
        """Return a file that the job executes without importing it; None if it cannot be read."""
        try:
            return self._read(file.stem, file)
        except InputError:
            return None

    def _given(self, code: CommandSource) -> Module:
        """The program in a command, at its lines in the command."""
        path = code.place.path
        return self._module("__main__", path, self.job.base / path, code.in_place)

    def _module(self, name: str, shown: str, file: Path, text: str) -> Module:
        version = self.target.python
        is_known = version is not None and (3, 7) <= version[:2] <= sys.version_info[:2]
        known = (version[0], version[1]) if version and is_known else None
        key = (name, shown, str(file), known)
        return shared_modules.find(key, text) or _parsed(key, text)


def share_module(key: shared_modules.ModuleKey) -> None:
    """Parse a file once more, for all checks that this process forks from now on; without effect if it cannot be read."""
    try:
        with open_file(key[2]) as stream:
            text = decoded(stream.read(LARGEST_BYTES))
    except (OSError, SyntaxError):
        return
    shared_modules.store(key, _parsed(key, text))


def _parsed(key: shared_modules.ModuleKey, text: str) -> Module:
    name, shown, file, version = key
    try:
        with warnings.catch_warnings():
            # Invalid escapes in the job's code are not our warnings.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, file, feature_version=version)
        return Module(name, shown, Path(file), text, tree)
    except SyntaxError as error:
        return Module(name, shown, Path(file), text, None, error)
    except (RecursionError, MemoryError, ValueError) as error:
        wrong = SyntaxError(f"cannot be parsed: {error}")
        return Module(name, shown, Path(file), text, None, wrong)


def decoded(data: bytes) -> str:
    """Decode Python source by its byte order mark or coding line.

    Raises:
        SyntaxError: the encoding is unknown or does not fit the bytes.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SyntaxError(f"(unicode error) {error}", ("", line, 0, "")) from error


def _first_on_path(job: Job) -> Iterator[Path]:
    """Where Python searches first: the script's directory, or with ``-m`` the working directory."""
    if job.module or job.script is None:
        yield job.folder
    elif job.script.is_dir():
        yield job.script
    else:
        yield job.script.resolve().parent
    for entry in (job.environment.get("PYTHONPATH") or "").split(":"):
        if entry:
            yield job.folder / entry


def lies_in(folder: Path, name: str) -> bool:
    """Whether a directory contains a module or package of this name, with or without ``__init__.py``."""
    return bool(_in(folder, name) or _namespace(folder, name))


def _in(folder: Path, name: str) -> Path | None:
    for file in (folder / name / "__init__.py", folder / f"{name}.py"):
        if is_file(file):
            return file
    return None


def _namespace(folder: Path, name: str) -> Path | None:
    """The directory ``name`` if it or one of its subdirectories contains Python files."""
    found = folder / name
    try:
        if not is_folder(found):
            return None
        entries = list(islice(found.iterdir(), _MOST_ENTRIES))
        if any(entry.suffix == ".py" for entry in entries):
            return found
        if any((entry / "__init__.py").is_file() for entry in entries):
            return found
    except OSError:
        pass
    return None


def _relative(file: Path, folder: Path) -> str:
    for root in (folder, folder.resolve()):
        if file.is_relative_to(root):
            return file.relative_to(root).as_posix()
    return file.as_posix()
