"""Which paths of this machine the job does not see, and what is mounted for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.paths.platform import beneath
from epochzero.check.target import read_interpreter
from epochzero.check.target.model import Target
from epochzero.errors import InputError
from epochzero.run.simulate.model import MountedPath

_ASKED_S = 10.0

_SYSTEM = frozenset(
    [
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "nix",
        "opt",
        "proc",
        "run",
        "sbin",
        "snap",
        "sys",
        "tmp",
        "usr",
        "var",
    ]
)
"""Of the root what every platform has."""
_SHELVES = frozenset(("home", "media", "mnt", "srv"))
"""Folders that every platform has, with what only some have in them."""
_NO_HOMES = frozenset(("/nonexistent", "/dev/null", "/var/empty"))
"""Homes of users without one (Debian Policy Manual, 9.2.3, and its like elsewhere)."""
_ROOTS = ("/bin", "/boot", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/var")
"""What only root may write to."""
_PATHS = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Places:
    """See the fields of the same names of `epochzero.run.simulate.model.Request`.

    Attributes:
        only_there: paths that exist on the target according to its file, and not here.
        unlimited: mounts whose limit of space cannot be held.
        metered: those that only Python is held to.
    """

    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    mounts: tuple[MountedPath, ...]
    unseen: tuple[str, ...]
    only_there: tuple[str, ...]
    unlimited: tuple[str, ...]
    metered: tuple[MountedPath, ...]


def places_of(
    target: Target,
    folder: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    attempt: Path,
    *,
    namespaces: bool,
) -> Places:
    """What the job finds.

    Args:
        target: the platform.
        folder: where the job runs; it travels with the job.
        command: of the job.
        environment: of the job.
        attempt: directory of the attempt.
        namespaces: whether there is a view of the job's own.
    """
    brought = _repository(folder)
    needed = {*_needed(command, environment), str(attempt), brought}
    absent = {*_said_absent(target), *_of_this_machine_only(target)}
    there = {path for path, is_there in target.files.items() if is_there}
    there |= {mount.path for mount in target.mounts or ()} - {"/"}
    if target.user is not None and target.user.home:
        there |= {target.user.home} - absent
    # Files written next to a missing path must remain, so it is hidden from Python only.
    unseen = {path for path in absent if not namespaces or beneath(path, brought)}
    mounts = _mounts(target, folder, brought, str(attempt))
    limited = list(_limited(target))
    here = {path for path in there if os.path.lexists(path)}
    return Places(
        hidden=tuple(sorted(absent - unseen)),
        shown=tuple(sorted(_with_links(needed | here))),
        mounts=tuple(mounts),
        unseen=tuple(sorted(path for path in unseen if path not in needed)),
        only_there=tuple(sorted(there - here - {mount.path for mount in mounts})),
        unlimited=tuple(mount.path for mount in limited if mount.path == "/"),
        metered=tuple(
            mount
            for mount in limited
            if mount.path != "/" and not (namespaces and _apart(mount.path, brought))
        ),
    )


def job_python(command: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """The Python that is likely to run the job; None where there is none on its path."""
    path = environment.get("PATH")
    for word in (command[0], "python", "python3"):
        found = shutil.which(word, path=path)
        if found and os.path.basename(found).startswith("python"):
            return _behind(Path(found), environment)
        if found and (Path(found).parent / "python").exists():
            return _behind(Path(found).parent / "python", environment)
    return None


def _behind(python: Path, environment: Mapping[str, str]) -> Path | None:
    """The interpreter that a program leads to; those of pyenv and asdf are scripts that choose one."""
    with suppress(InputError):
        read_interpreter(python)
        return python
    words = [str(python), "-c", "import sys; print(sys.executable)"]
    with suppress(OSError, subprocess.SubprocessError, InputError):
        done = subprocess.run(
            words,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=_ASKED_S,
            check=True,
        )
        read_interpreter(Path(done.stdout.strip()))
        return Path(done.stdout.strip())
    return None


def _repository(folder: str) -> str:
    """The job's folder with the repository around it."""
    above = (path for path in (Path(folder), *Path(folder).parents) if (path / ".git").exists())
    return str(next(above, folder))


def _needed(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """What has to be there for the job to start at all: programs, its Python, ourselves."""
    yield from (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))
    for name in _PATHS:
        yield from filter(os.path.isabs, environment.get(name, "").split(os.pathsep))
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program:
        yield from (program, os.path.realpath(program))
    python = job_python(command, environment)
    if python is not None:
        yield from (str(python.parent.parent), str(Path(os.path.realpath(python)).parent.parent))
        try:
            yield from read_interpreter(python).folders
        except InputError:
            return


def _with_links(paths: Iterable[str]) -> Iterator[str]:
    """Paths, and where they lead; the root and what every platform has always exist."""
    for path in paths:
        for text in (os.path.abspath(path), os.path.realpath(path)):
            if text != "/" and os.path.lexists(text):
                yield text


def _said_absent(target: Target) -> Iterator[str]:
    """What the target says is not there, and is here."""
    for path, is_there in target.files.items():
        if not is_there and os.path.lexists(path):
            yield os.path.normpath(path)
    for folder in target.listed:
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                if not any(beneath(text, path) for text, there in target.files.items() if there):
                    yield path


def _of_this_machine_only(target: Target) -> Iterator[str]:
    """Data and homes of this machine, where the target says what it mounts."""
    if target.mounts is None:
        return
    for name in os.listdir("/"):
        path = "/" + name
        if name in _SHELVES and os.path.isdir(path):
            yield from (os.path.join(path, entry) for entry in os.listdir(path))
        elif name not in _SYSTEM and name not in _SHELVES:
            yield path


def _apart(first: str, second: str) -> bool:
    """Whether none of two folders lies in the other."""
    return not beneath(first, second) and not beneath(second, first)


def _mounts(target: Target, folder: str, brought: str, attempt: str) -> list[MountedPath]:
    """What is mounted."""
    found: list[MountedPath] = []
    for mount in target.mounts or ():
        path = os.path.normpath(mount.path)
        limit = _limit(mount.path, mount.quota_bytes, mount.free_bytes)
        here = os.path.lexists(path)
        if path == "/" or beneath(path, brought):
            # Files written next to the job's program must remain.
            limit = None
        if here or (path != "/" and not beneath(path, brought)):
            found.append(MountedPath(path, mount.writable, limit if mount.writable else None))
    home = target.user.home if target.user is not None else ""
    found += _of_root(target, {mount.path for mount in found})
    made = {mount.path for mount in found}
    if (
        home
        and home not in _NO_HOMES
        and not os.path.lexists(home)
        and target.files.get(home, home not in made)
    ):
        found.append(MountedPath(home))
    if found:
        again = [attempt]
        if _is_writable(target, folder):
            again.append(brought)
        found += [MountedPath(path, again=True) for path in again]
    return found


def _of_root(target: Target, known: set[str]) -> Iterator[MountedPath]:
    """Root's folders cannot be written by a simulated user who is root here."""
    is_root = os.geteuid() == 0 and target.user is not None and target.user.uid
    for path in _ROOTS if is_root else ():
        if path not in known and os.path.isdir(path) and not os.path.islink(path):
            yield MountedPath(path, writable=False)
    if is_root and "/var/tmp" not in known and os.path.isdir("/var/tmp"):
        yield MountedPath("/var/tmp", again=True)


def _limit(path: str, *amounts: int | None) -> int | None:
    """Bytes that may be written at a mount; None where this machine has no more, or none is known."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return None
    if not os.path.isdir(path):
        return min(known)
    state = os.statvfs(path)
    return min(known) if min(known) < state.f_bavail * state.f_frsize else None


def _limited(target: Target) -> Iterator[MountedPath]:
    """Mounts with less writable space than here."""
    for mount in target.mounts or ():
        limit = _limit(mount.path, mount.quota_bytes, mount.free_bytes)
        if limit is not None and mount.writable:
            yield MountedPath(os.path.normpath(mount.path), bytes=limit)


def _is_writable(target: Target, folder: str) -> bool:
    """Whether the job's own folder may be written to: of a root that may not be it is no part."""
    place = target.working_folder or folder
    around = [m for m in target.mounts or () if beneath(place, os.path.normpath(m.path))]
    nearest = max(around, key=lambda mount: len(mount.path), default=None)
    if nearest is None or (nearest.path == "/" and not target.working_folder):
        return True
    return nearest.writable
