"""Installed packages: those of an interpreter, and those of package lists in all common formats."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from epochzero.check.target.interpreter import added_folders
from epochzero.check.target.model import Distribution
from epochzero.errors import InputError, reading
from epochzero.file_access import open_file

if TYPE_CHECKING:
    from email.message import Message
    from importlib import metadata


LARGEST_LIST_BYTES = 64 << 20
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
Found = dict[str, Distribution]

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[[^\]]*\])?\s*(?:===?\s*(?P<version>[^\s;,#*]+)(?![^\s;#]))?"
)
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-/]+)-[^/]*\.whl")
_AT = re.compile(rf"(?P<name>{_NAME})\s*(?:\[[^\]]*\])?\s*@\s*(?P<url>\S+)")
_EGG = re.compile(rf"[#&]egg=(?P<name>{_NAME})")
_CONDA = re.compile(
    r"(?:[\w./-]+::)?(?P<name>[\w.-]+)(?:\s*={1,2}\s*|\s+)?(?P<version>\d[\w.+!]*)?(?:=\S*)?\s*"
)
_CONDA_URL = re.compile(r"/([^/]+)-([^-/]+)-[^-/]+\.(?:conda|tar\.bz2)")
_PIXI = re.compile(r"^- (?:conda|pypi): ", re.MULTILINE)
_EXTENSION = re.compile(r"\.(?:cpython-|abi3|cp\d|pypy)?[\w-]*\.?(?:so|pyd)$")


def normalized(name: str) -> str:
    """The normalized name of a distribution (PEP 503).

    >>> normalized("Ruamel.YAML_x")
    'ruamel-yaml-x'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def well_known() -> Mapping[str, tuple[str, ...]]:
    """Well-known distributions with their top-level modules."""
    text = files(__package__).joinpath("modules.toml").read_text(encoding="utf-8")
    return MappingProxyType({name: tuple(modules) for name, modules in tomllib.loads(text).items()})


def likely_modules(distribution: Distribution) -> tuple[str, ...]:
    """The top-level modules of a distribution: if unknown, what its name suggests."""
    if distribution.modules is not None:
        return distribution.modules
    return well_known().get(distribution.name, (distribution.name.replace("-", "_"),))


# -- This interpreter --------------------------------------------------------------------------


def installed(path: Sequence[str]) -> Found:
    """The distributions in these directories; of two with one name, the one that Python would import.

    A module that lies in a package directory without a distribution counts as one without a version.
    """
    from importlib import metadata  # Loading it takes longer than reading a target file.

    found: Found = {}
    for distribution in metadata.distributions(path=list(path)):
        try:
            metadata_ = _metadata(distribution)
            name = normalized(_field(metadata_, "Name"))
        except (KeyError, TypeError, OSError, ValueError):
            continue  # damaged metadata
        if name and name not in found:
            found[name] = _described(name, distribution, metadata_)
    provided = {module for each in found.values() for module in likely_modules(each)}
    for module in _importable(path) - provided:
        name = normalized(module)
        found.setdefault(name, Distribution(name, "", (module,)))
    return found


def _importable(path: Sequence[str]) -> set[str]:
    """The top-level modules in the package directories among these, and in those that their ``.pth`` files add."""
    roots = [Path(folder) for folder in path if Path(folder).name in _PACKAGE_FOLDERS]
    names: set[str] = set()
    for folder in (*roots, *(added for root in roots for added in added_folders(root))):
        with suppress(OSError):
            for entry in folder.iterdir():
                if _EXTENSION.search(entry.name) or entry.suffix == ".py":
                    names.add(_module_of(PurePosixPath(entry.name)))
                elif (entry / "__init__.py").is_file():
                    names.add(entry.name)
    return {name for name in names if name.isidentifier()}


def _metadata(distribution: metadata.Distribution) -> Message:
    """The metadata of a distribution without its description, whose parsing takes most of the time."""
    from email.parser import HeaderParser

    for name in (
        "METADATA",
        "PKG-INFO",
        "",
    ):  # Like `importlib.metadata`; the last one is the file of an egg.
        if text := distribution.read_text(name):
            return HeaderParser().parsestr(re.split(r"\n\r?\n", text, maxsplit=1)[0])
    raise KeyError("it has no metadata")


def _field(metadata_: Message, key: str) -> str:
    return str(metadata_[key] or "") if key in metadata_ else ""


def _described(name: str, distribution: metadata.Distribution, metadata_: Message) -> Distribution:
    try:
        modules = _modules(distribution)
    except (OSError, ValueError, csv.Error):
        modules = None
    return Distribution(
        name,
        _field(metadata_, "Version"),
        modules,
        tuple(map(str, metadata_.get_all("Requires-Dist") or _required(distribution))),
        tuple(map(str, metadata_.get_all("Provides-Extra") or ())),
    )


def _required(distribution: metadata.Distribution) -> Iterable[str]:
    """The requirements of an egg, which its metadata does not list."""
    return distribution.requires or () if distribution.read_text("requires.txt") else ()


def _modules(distribution: metadata.Distribution) -> tuple[str, ...] | None:
    """The importable top-level modules of an installed distribution; None if unknown.

    They follow from its list of files. An editable installation lists none of its sources and names them in a ``.pth`` file or an
    import finder.
    """
    names = set((distribution.read_text("top_level.txt") or "").split())
    for path in _files(distribution):
        if path.partition("/")[0] in names:
            continue
        file = PurePosixPath(path)
        if name := _module_of(file):
            names.add(name)
        elif file.suffix == ".pth" or file.name.startswith("__editable__"):
            names |= _editable(Path(str(distribution.locate_file(file))))
    return tuple(sorted(name for name in names if name.isidentifier())) or None


def _files(distribution: metadata.Distribution) -> Iterable[str]:
    """The paths of installed files; ``Distribution.files`` would create thousands of objects."""
    if record := distribution.read_text("RECORD"):
        if (
            '"' not in record
        ):  # Cutting a row at its first comma is five times as fast as parsing CSV.
            return [line.partition(",")[0] for line in record.splitlines() if line]
        return [row[0] for row in csv.reader(record.splitlines()) if row]
    return map(str, distribution.files or ())


def _module_of(file: PurePosixPath) -> str:
    """The top-level module of an installed file; empty for other files."""
    parts = file.parts
    if ".." in parts or not parts or parts[0].startswith("__editable__"):
        return ""
    if len(parts) > 1:
        is_code = file.suffix in {".py", ".pyi", ".so", ".pyd"}
        return parts[0] if is_code and parts[0] != "__pycache__" else ""
    if file.suffix == ".py":
        return file.stem
    return _EXTENSION.sub("", file.name) if _EXTENSION.search(file.name) else ""


def _editable(file: Path) -> set[str]:
    """The modules that a file of an editable installation provides."""
    try:
        if file.suffix == ".py":
            mapping = re.search(r"^MAPPING[^=]*= (\{.*?\})", file.read_text("utf-8"), re.M | re.S)
            return set(re.findall(r"'([^'./]+)': ", mapping[1])) if mapping else set()
        folders = [line for line in file.read_text("utf-8").splitlines() if line.startswith("/")]
        return {
            entry.stem
            for folder in folders
            for entry in Path(folder).iterdir()
            if entry.suffix == ".py" or (entry / "__init__.py").is_file()
        }
    except (OSError, ValueError):
        return set()


# -- Lists of packages -------------------------------------------------------------------------


def read_packages(path: Path) -> Mapping[str, Distribution]:
    """Read the distributions of a list of packages.

    ``pip freeze`` and requirements (with included files), ``uv.lock``, ``poetry.lock``, ``Pipfile.lock``, ``pylock.toml``,
    ``pixi.lock``, ``environment.yml``, and ``conda list`` with ``--export``, ``--explicit`` or as a table. A requirement without a fixed version
    is a distribution with an empty version. The modules of well-known distributions are known.

    Raises:
        InputError: the file cannot be read, or is not such a list.
    """
    text = _text(path)
    try:
        pairs = _reader(path, text)(path, text)
        return MappingProxyType({name: _named(name, version) for name, version in pairs})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a list of packages: {error}") from error


Pairs = Iterable[tuple[str, str]]


def _named(name: str, version: str) -> Distribution:
    return Distribution(name, version, well_known().get(name))


def _text(path: Path) -> str:
    with reading(path), open_file(path, pipes=True) as stream:
        data = stream.read(LARGEST_LIST_BYTES + 1)
    if len(data) > LARGEST_LIST_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_LIST_BYTES >> 20} MB")
    if b"\0" in data[:1024] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} is not text; it appears to be a binary file")
    # PowerShell writes `pip freeze > requirements.txt` in UTF-16.
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if marked else "utf-8-sig", "replace")


def _reader(path: Path, text: str) -> Callable[[Path, str], Pairs]:
    if path.suffix in {".yml", ".yaml"}:
        return _conda_environment
    if path.name == "pixi.lock" or (path.suffix == ".lock" and _PIXI.search(text)):
        return _pixi
    if path.name == "Pipfile.lock" or text.lstrip().startswith("{"):
        return _pipfile
    # A requirements.lock is not TOML.
    if path.suffix == ".toml" or (path.suffix == ".lock" and "[[package" in text):
        return _toml_lock
    if "@EXPLICIT" in text:
        return _conda_explicit
    if re.search(r"^# packages in environment|^# platform: |^# This file may be used to create",
                 text, re.MULTILINE):  # fmt: skip
        return _conda_list
    return _requirements


def _toml_lock(path: Path, text: str) -> Pairs:
    """``uv.lock``, ``poetry.lock`` (``[[package]]``) and ``pylock.toml`` (``[[packages]]``)."""
    data = tomllib.loads(text)
    packages = data.get("package", data.get("packages"))
    if not isinstance(packages, list):
        raise ValueError("it has neither [[package]] nor [[packages]]")
    for package in packages:
        yield normalized(package["name"]), str(package.get("version", ""))


def _pipfile(path: Path, text: str) -> Pairs:
    data = json.loads(text)
    for section in ("default", "develop"):
        for name, metadata_ in data.get(section, {}).items():
            yield normalized(name), str(metadata_.get("version", "")).lstrip("=")


def _requirements(path: Path, text: str, seen: frozenset[Path] = frozenset()) -> Pairs:
    """Requirements; lines without a package (options, hashes, constraints) are ignored."""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(?:^|\s)#.*$", "", line).strip()
        included = re.match(r"(?:-r|--requirement)[ =]?\s*(\S+)", line)
        if included:
            other = path.parent / included[1]
            if other.resolve() not in seen and len(seen) < 32:
                yield from _requirements(other, _text(other), seen | {path.resolve()})
        elif pair := _requirement(line, path.parent):
            yield pair


def _requirement(line: str, folder: Path) -> tuple[str, str] | None:
    """Name and version of a line of a list in this directory; None if it installs nothing."""
    line = re.sub(r"^(?:-e|--editable)[ =]\s*", "", line)
    if found := _AT.match(line):
        wheel = _WHEEL.search(found["url"])
        return normalized(found["name"]), wheel["version"] if wheel else ""
    if found := _EGG.search(line) or _WHEEL.search(line):
        return normalized(found["name"]), found.groupdict().get("version") or ""
    if not line or line.startswith("-"):
        return None
    if line.startswith((".", "/")) or "://" in line:
        return _unnamed(line, folder)
    found = _REQUIREMENT.match(line)
    if found is None or not re.match(r"\s*(?:$|[<>!~=]=|[<>;,(]|--)", line[found.end() :]):
        raise ValueError(f"{line[:80]!r} is not a valid requirement")
    return normalized(found["name"]), found["version"] or ""


def _unnamed(line: str, folder: Path) -> tuple[str, str]:
    """A repository or a directory; the name of its distribution is usually that of its last part."""
    last = re.split(r"[#?;\[\s]", line)[0].rstrip("/")
    name = re.split(r"@|\.git\b", last.rpartition("/")[2])[0] if "://" in line else ""
    return normalized(name or (folder / last).resolve().name), ""


def _conda_environment(path: Path, text: str) -> Pairs:
    """``environment.yml``: its dependencies, including those of pip, without a YAML parser."""
    section = re.search(
        r"^dependencies:[^\n]*\n(?P<body>(?:[ \t-].*\n?|\s*#.*\n?|\s*\n)*)", text, re.M
    )
    if section is None:
        raise ValueError("it has no dependencies")
    by_pip: int | None = None
    for line in section["body"].splitlines():
        item = re.match(r"(?P<indent>\s*)-\s+(?P<said>.*?)\s*(?:\s#.*)?$", line)
        if item is None:
            continue
        metadata_, indent = item["said"].strip("'\""), len(item["indent"])
        if by_pip is not None and indent > by_pip:
            yield from _requirements(path, metadata_)
        elif re.fullmatch(r"pip\s*:", metadata_):
            by_pip = indent
        else:
            by_pip = None
            yield from _conda(metadata_)


def _conda(metadata_: str) -> Iterator[tuple[str, str]]:
    found = _CONDA.match(metadata_)
    if found and not metadata_.startswith("_"):
        yield normalized(found["name"]), found["version"] or ""


def _conda_list(path: Path, text: str) -> Pairs:
    """``conda list``, with ``--export`` (``name=version=build``) or as a table."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "_")):
            yield from _conda(line.strip())


def _conda_explicit(path: Path, text: str) -> Pairs:
    """``conda list --explicit``: one package URL per line, ``name-version-build``."""
    for line in text.splitlines():
        found = _CONDA_URL.search(line)
        if found and not found[1].startswith("_"):
            yield normalized(found[1]), found[2]


def _pixi(path: Path, text: str) -> Pairs:
    """``pixi.lock``: the packages of all its environments, of conda by URL and of PyPI by name, without a YAML parser."""
    _, _, packages = text.partition("\npackages:")
    for package in re.split(r"^- ", packages, flags=re.MULTILINE)[1:]:
        if package.startswith("conda:"):
            yield from _conda_explicit(path, package.partition("\n")[0])
        elif name := re.search(r"^  name: (\S+)$", package, re.MULTILINE):
            version = re.search(r"^  version: ['\"]?([^\s'\"]+)", package, re.MULTILINE)
            yield normalized(name[1]), version[1] if version else ""
