"""A Python of this machine: its version and module search path, determined without running it.

The order of the directories is that of ``site`` (Python documentation, library reference: ``site``, ``sys.path``);
environments are those of PEP 405 and of conda.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from epochzero.errors import InputError
from epochzero.file_access import open_file, unconfined

LARGEST_SETTINGS_BYTES = 1 << 20
_SETTING = re.compile(r"^\s*([\w-]+)\s*=\s*(.*?)\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_MINOR = re.compile(r"(?:python|pypy)(3\.\d+)t?")


@dataclass(frozen=True, slots=True)
class PythonInstallation:
    """A Python.

    Attributes:
        version: such as ``(3, 11, 4)``; None if unknown.
        folders: directories of its module search path, without those of the standard library.
    """

    version: tuple[int, int, int] | None
    folders: tuple[str, ...]


def running() -> PythonInstallation:
    """The Python that runs this code."""
    return PythonInstallation(
        sys.version_info[:3], tuple(folder or os.getcwd() for folder in sys.path)
    )


@unconfined()
def read_interpreter(program: Path, *, home: str = "") -> PythonInstallation:
    """Read the interpreter of a program: of an environment, of conda or of the system.

    Args:
        program: ``.venv/bin/python``; links are followed.
        home: of the user, whose user packages count outside of environments; empty for none.

    Raises:
        InputError: the file does not exist, or is not a Python whose packages can be found.
    """
    real = Path(os.path.realpath(program))
    if not real.is_file():
        raise InputError(f"{program}: no such file")
    prefix = Path(os.path.abspath(program)).parent.parent
    settings = _settings(prefix / "pyvenv.cfg")
    base = Path(settings["home"]).parent if settings.get("home") else real.parent.parent
    minor = _minor(real, prefix)
    if not minor:
        raise InputError(f"{program} is not a Python interpreter with a package directory")
    folders: list[Path] = []
    if settings:
        folders += _site_folders(prefix, minor)
    if settings.get("include-system-site-packages", "true").lower() == "true":
        own = Path(home, ".local/lib", f"python{minor}", "site-packages")
        folders += [own] if home and own.is_dir() else []
        folders += _site_folders(base, minor)
    listed = [entry for folder in folders for entry in (folder, *added_folders(folder))]
    return PythonInstallation(
        version_of(real, minor, settings), tuple(map(str, dict.fromkeys(listed)))
    )


def _settings(file: Path) -> dict[str, str]:
    """The settings of an environment (PEP 405); empty if it is not one."""
    try:
        with open_file(file) as stream:
            text = stream.read(LARGEST_SETTINGS_BYTES).decode("utf-8", "replace")
        return dict(_SETTING.findall(text))
    except OSError:
        return {}


def _minor(real: Path, prefix: Path) -> str:
    """``3.11``: by the program's name, else by its only library directory."""
    named = _MINOR.fullmatch(real.name)
    if named or not real.name.startswith(("python", "pypy")):
        return named[1] if named else ""
    names = {folder.name for root in (prefix, real.parent.parent) for folder in root.glob("lib/*")}
    found = {match[1] for name in names if (match := _MINOR.fullmatch(name))}
    return found.pop() if len(found) == 1 else ""


def _site_folders(prefix: Path, minor: str) -> list[Path]:
    """The package directories of an installation; Debian's differ from all others."""
    usual = [prefix / lib / f"python{minor}" / "site-packages" for lib in ("lib", "lib64")]
    debian = [
        Path("/usr/local/lib", f"python{minor}", "dist-packages"),
        Path("/usr/lib/python3/dist-packages"),
    ]
    folders = [*usual, *(debian if prefix == Path("/usr") else ())]
    found: dict[str, Path] = {}
    for folder in folders:
        if folder.is_dir():
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def added_folders(folder: Path) -> Iterator[Path]:
    """The directories that ``.pth`` files add; lines with code are not run."""
    for file in sorted(folder.glob("*.pth")):
        try:
            with open_file(file) as stream:
                text = stream.read(LARGEST_SETTINGS_BYTES).decode("utf-8", "replace")
            lines = text.splitlines()
        except OSError:
            continue
        for line in lines:
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                path = folder / line.strip()
                if path.is_dir():
                    yield path


def version_of(real: Path, minor: str, settings: dict[str, str]) -> tuple[int, int, int] | None:
    """The version by its environment, its header, or the program itself."""
    version_text = settings.get("version") or settings.get("version_info") or ""
    if version_text.startswith(f"{minor}.") and (found := _NUMBERS.match(version_text)):
        return int(found[1]), int(found[2]), int(found[3])
    pattern = re.compile(rb'["\x00]%s\.(\d{1,2})\+?["\x00]' % re.escape(minor).encode())
    for file in (real.parent.parent / "include" / f"python{minor}" / "patchlevel.h", real):
        patch = _searched(file, pattern)
        if patch is not None:
            major, _, second = minor.partition(".")
            return int(major), int(second), patch
    return None


def _searched(file: Path, pattern: re.Pattern[bytes]) -> int | None:
    """The first match of a pattern in a file."""
    try:
        with (
            open_file(file) as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            found = pattern.search(data)
            return int(found[1]) if found else None
    except (OSError, ValueError):
        return None
