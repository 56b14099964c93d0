"""A container image as a target, from its archive: packages, Python, CUDA and settings, without running it.

Archives are those of ``docker save`` and ``podman save`` (``manifest.json``) and of the OCI Image Layout
Specification 1.0 (``index.json``). Layers are applied in order, with their whiteouts (OCI Image Layer Filesystem
Changeset). What describes packages is extracted to a temporary directory and read like an installation.
"""

from __future__ import annotations

import gzip
import json
import posixpath
import re
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from epochzero import zstd
from epochzero.check.target.api import LIBRARIES, read_api
from epochzero.check.target.interpreter import version_of
from epochzero.check.target.machine import MOST_API_NAMES
from epochzero.check.target.model import Target, User
from epochzero.check.target.packages import installed
from epochzero.check.target.system import SHARED_LIBRARY, without_secrets
from epochzero.check.target.torch_build import torch_build
from epochzero.errors import InputError
from epochzero.scratch import scratch_directory

MOST_MEMBERS = 2_000_000
MOST_EXTRACTED_BYTES = 4 << 30
LARGEST_JSON_BYTES = 16 << 20
MOST_LINKS = 40
MOST_LISTED = 10_000
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIBRARY_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
_METADATA = re.compile(
    r"(?:^|/)(?:site|dist)-packages/(?:[^/]+\.(?:dist|egg)-info(?:/[^/]+)?|[^/]+\.(?:pth|egg-link))$"
    r"|(?:^|/)pyvenv\.cfg$|/patchlevel\.h$|^etc/(?:ld\.so\.conf\.d/[^/]+|passwd)$"
)
_SOURCE = re.compile(r"(?:^|/)(?:site|dist)-packages/([^/.]+)(?:/.*)?\.pyi?$")
_PROGRAM = re.compile(r"(?:^|/)bin/python3\.\d+$")
_PYTHON = re.compile(r"python(3\.\d+)t?")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the image: its mode with the type bits of ``stat``, and where a link leads."""

    mode: int
    link: str = ""


def read_image(
    path: Path,
    *,
    name: str,
    libraries: Sequence[str] = LIBRARIES,
    on_progress: Callable[[str], None] = lambda part: None,
) -> Target:
    """Describe a container image by its archive.

    Args:
        path: the archive.
        name: of the target.
        libraries: modules whose public API is read; missing ones are skipped.
        on_progress: called with the name of each part before it is determined.

    Raises:
        InputError: the archive cannot be read, is damaged, or contains no image.
    """
    try:
        with (
            tarfile.open(path) as archive,
            scratch_directory() as scratch,
        ):
            config, layers = _image(archive)
            tree = _Tree(Path(scratch).resolve(), libraries)
            for number, layer in enumerate(layers, 1):
                on_progress(f"layer {number} of {len(layers)}")
                tree.apply(archive, layer)
            return _target(tree, config, name, libraries, on_progress)
    except (OSError, tarfile.TarError, EOFError, zstd.ZstdError) as error:
        raise InputError(f"{path} is not a readable image archive: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{path} is not a container image: {error}") from error


# -- The archive -------------------------------------------------------------------------------


def _image(archive: tarfile.TarFile) -> tuple[Mapping[str, Any], Sequence[str]]:
    """The configuration of the first image of an archive, and the names of its layers."""
    names = set(archive.getnames())
    if "manifest.json" in names:
        first = _json(archive, "manifest.json")[0]
        return _json(archive, first["Config"]), [str(layer) for layer in first["Layers"]]
    if "index.json" not in names:
        raise ValueError("it has neither manifest.json (docker save) nor index.json (OCI)")
    found = _json(archive, "index.json")
    while "manifests" in found:  # an index may contain one for several platforms
        listed = found["manifests"]
        usual = [
            element
            for element in listed
            if element.get("platform", {}).get("architecture", "amd64") == "amd64"
        ]
        found = _json(archive, _blob((usual or listed)[0]["digest"]))
    layers = [_blob(layer["digest"]) for layer in found["layers"]]
    return _json(archive, _blob(found["config"]["digest"])), layers


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/', 1)}"


def _json(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is not a file")
    return json.loads(file.read(LARGEST_JSON_BYTES))


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """A layer as a stream of its members, whatever compresses it."""
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        stream: Any = gzip.GzipFile(fileobj=file)
    elif magic == b"\x28\xb5\x2f\xfd":
        stream = zstd.ZstdFile(file)
    else:
        stream = file
    with tarfile.open(fileobj=stream, mode="r|") as layer:
        yield layer


# -- The file system ---------------------------------------------------------------------------


class _Tree:
    """The file system of an image: all names, and on disk what describes its packages.

    Args:
        root: empty directory for what is extracted.
        libraries: modules whose sources are extracted.
    """

    def __init__(self, root: Path, libraries: Sequence[str]) -> None:
        self.root = root
        self.entries: dict[str, _Entry] = {}
        self._libraries = frozenset(libraries)
        self._left = MOST_EXTRACTED_BYTES

    def apply(self, archive: tarfile.TarFile, name: str) -> None:
        """Apply a layer of the archive."""
        file = archive.extractfile(name)
        if file is None:
            raise ValueError(f"layer {name} is not a file")
        with _unpacked(file) as layer:
            for member in layer:
                path = posixpath.normpath(member.name).lstrip("/")
                if path == "." or path.startswith("../"):
                    continue
                if len(self.entries) >= MOST_MEMBERS:
                    raise ValueError(f"it has more than {MOST_MEMBERS:,} files")
                self._add(layer, member, path)

    def _add(self, layer: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        folder, _, base = path.rpartition("/")
        if base == ".wh..wh..opq":
            self._remove(folder, inside_only=True)
        elif base.startswith(".wh."):
            self._remove(posixpath.join(folder, base.removeprefix(".wh.")))
        elif member.isdir():
            self.entries.setdefault(path, _Entry(stat.S_IFDIR | member.mode))
        elif member.issym():
            self.entries[path] = _Entry(stat.S_IFLNK, member.linkname)
        elif member.islnk():
            self.entries[path] = _Entry(
                stat.S_IFLNK, f"/{posixpath.normpath(member.linkname).lstrip('/')}"
            )
        elif member.isfile():
            self.entries[path] = _Entry(stat.S_IFREG | member.mode)
            if self._is_wanted(path):
                self._extract(layer, member, path)

    def _is_wanted(self, path: str) -> bool:
        source = _SOURCE.search(path)
        of_library = source is not None and source[1] in self._libraries
        return of_library or bool(_METADATA.search(path) or _PROGRAM.search(path))

    def _extract(self, layer: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        self._left -= member.size
        if self._left < 0:
            raise ValueError(f"its packages take more than {MOST_EXTRACTED_BYTES >> 30} GiB")
        file = layer.extractfile(member)
        target = self.root / path
        if file is not None and target.is_relative_to(self.root):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())

    def _remove(self, path: str, *, inside_only: bool = False) -> None:
        below = f"{path}/"
        gone = [entry for entry in self.entries if entry.startswith(below)]
        for text in [*gone, *([] if inside_only else [path])]:
            self.entries.pop(text, None)
            (self.root / text).unlink(missing_ok=True) if (self.root / text).is_file() else None

    def resolved(self, path: str) -> str:
        """A path without links; as it is if a link leads nowhere."""
        waiting, done = path.strip("/").split("/"), ""
        for _ in range(MOST_LINKS * 10):
            if not waiting:
                break
            part = waiting.pop(0)
            at = (
                posixpath.normpath(posixpath.join(done, part))
                if part != ".."
                else posixpath.dirname(done)
            )
            entry = self.entries.get(at)
            if entry is not None and stat.S_ISLNK(entry.mode):
                waiting = entry.link.strip("/").split("/") + waiting
                done = "" if entry.link.startswith("/") else done
            else:
                done = "" if at == "." else at
        return done

    def names_in(self, folder: str) -> Iterator[tuple[str, _Entry]]:
        """Names and entries of the files directly in a directory; links have the mode of their target."""
        below = f"{self.resolved(folder)}/"
        for path, entry in self.entries.items():
            if path.startswith(below) and "/" not in path[len(below) :]:
                target = self.entries.get(self.resolved(path), entry)
                if not stat.S_ISDIR(target.mode):
                    yield path[len(below) :], target

    def text(self, path: str) -> str:
        """The text of an extracted file; empty if there is none."""
        try:
            return (self.root / self.resolved(path)).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


# -- The target --------------------------------------------------------------------------------


def _target(
    tree: _Tree,
    config: Mapping[str, Any],
    name: str,
    libraries: Sequence[str],
    on_progress: Callable[[str], None],
) -> Target:
    settings = config.get("config") or {}
    environment = dict(str(pair).partition("=")[::2] for pair in settings.get("Env") or ())
    folder = str(settings.get("WorkingDir") or "/")
    program = _python(tree, environment.get("PATH") or _PATH)
    version, folders = _interpreter(tree, program, environment) if program else (None, [])
    on_progress("api")
    api, _ = read_api(libraries, folders, most_names=MOST_API_NAMES)
    build = torch_build(folders)
    started = [*(settings.get("Entrypoint") or ()), *(settings.get("Cmd") or ())]
    notes = [
        f"read from the image, which starts: {' '.join(map(str, started)) or 'nothing'}",
        "gpus, limits, mounts, network: those of the machine that runs the image",
    ]
    if program is None:
        notes.append("python, distributions: no Python on the image's path")
    target = Target(
        name=name,
        python=version,
        distributions=MappingProxyType(installed(folders)) if program else None,
        api=MappingProxyType(api),
        shared_libraries=frozenset(_shared_libraries(tree, environment)),
        programs=frozenset(_programs(tree, environment.get("PATH") or _PATH)),
        cuda_of_torch=build.cuda if build else None,
        user=_user(tree, str(settings.get("User") or "root")),
        environment=MappingProxyType(without_secrets(environment)),
        working_folder=folder,
        notes=tuple(notes),
    )
    return _with_files(target, tree, folder)


def _python(tree: _Tree, path: str) -> str | None:
    """The program that ``python``, or ``python3``, is on a search path."""
    for name in ("python", "python3"):
        for folder in path.split(":"):
            candidate = posixpath.join(tree.resolved(folder), name)
            if candidate in tree.entries:
                return candidate
    return None


def _interpreter(
    tree: _Tree, program: str, environment: Mapping[str, str]
) -> tuple[tuple[int, int, int] | None, list[str]]:
    """Version and package directories (on disk) of a Python of the image."""
    real = tree.resolved(program)
    prefix = posixpath.dirname(posixpath.dirname(program))
    settings = dict(
        re.findall(r"^\s*([\w-]+)\s*=\s*(.*?)\s*$", tree.text(f"{prefix}/pyvenv.cfg"), re.M)
    )
    base = posixpath.dirname(posixpath.dirname(real))
    named = _PYTHON.fullmatch(posixpath.basename(real))
    if named is None:
        return None, []
    minor = named[1]
    own = prefix if settings else base
    shared = settings.get("include-system-site-packages", "true").lower() == "true"
    places = [own, *([base] if shared and own != base else [])]
    folders = [
        f"{place}/{lib}/python{minor}/site-packages" for place in places for lib in ("lib", "lib64")
    ]
    if shared and base == "usr":
        folders += [f"usr/local/lib/python{minor}/dist-packages", "usr/lib/python3/dist-packages"]
    on_disk = (tree.root / tree.resolved(folder) for folder in folders)
    found = [str(folder) for folder in dict.fromkeys(on_disk) if folder.is_dir()]
    stated = environment.get("PYTHON_VERSION") or settings.get("version") or ""
    version = version_of(tree.root / real, minor, {"version": stated})
    return version, found


def _programs(tree: _Tree, path: str) -> Iterator[str]:
    for folder in path.split(":"):
        yield from (name for name, entry in tree.names_in(folder) if entry.mode & 0o111)


def _shared_libraries(tree: _Tree, environment: Mapping[str, str]) -> Iterator[str]:
    listed = [path for path in tree.entries if path.startswith("etc/ld.so.conf.d/")]
    folders: Iterable[str] = (
        *_LIBRARY_FOLDERS,
        *environment.get("LD_LIBRARY_PATH", "").split(":"),
        *(line.strip() for path in listed for line in tree.text(path).splitlines()),
    )
    for folder in dict.fromkeys(folders):
        if folder.startswith("/"):
            names = (name for name, _ in tree.names_in(folder))
            yield from (name for name in names if SHARED_LIBRARY.search(name))


def _user(tree: _Tree, declared: str) -> User:
    """The user of the image's configuration: a name or a number, with or without a group."""
    named = declared.partition(":")[0]
    for line in tree.text("etc/passwd").splitlines():
        name, _, uid, gid, _, home, *_ = [*line.split(":"), *[""] * 7]
        if named in (name, uid) and uid.isdigit() and gid.isdigit():
            return User(name, int(uid), int(gid), (), home)
    return User("" if named.isdigit() else named, int(named) if named.isdigit() else None)


def _with_files(target: Target, tree: _Tree, folder: str) -> Target:
    """The target with the content of the working directory, if it is small enough to be listed."""
    top = tree.resolved(folder)
    inside = [path for path in tree.entries if path.startswith(f"{top}/")] if top else []
    if not inside or len(inside) > MOST_LISTED:
        return target
    folders = [top, *(path for path in inside if stat.S_ISDIR(tree.entries[path].mode))]
    files = {f"/{path}": True for path in inside}
    return replace(target, files=files, listed=tuple(f"/{path}" for path in folders))
