"""The file systems of the target before the job starts, as far as they are known.

Paths are absolute and have no ``..``. The job directory is copied to the target: what exists in it
here is assumed to exist there, with its case, whether git ignores it or not, and anything else in it
is assumed to be missing. Its location there is known if the target or the job sets a working
directory; otherwise its location here is used.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from pathlib import Path

from epochzero.check.launch.containers import user_of
from epochzero.check.launch.model import Job
from epochzero.check.target.model import Mount, Target
from epochzero.file_access import exists, is_folder, open_file, readable

NOWHERE = "/?"
"""Placeholder for an unknown current directory."""

_MOST_ENTRIES = 20_000
_SYSTEM = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run", "/etc", "/usr", "/opt", "/bin")
_SYSTEM_ONLY = re.compile(r"/(bin|boot|etc|lib|lib64|proc|sbin|sys|usr)(/|$)|.*/site-packages(/|$)")
_HOME = re.compile(r"(/home/[^/]+|/Users/[^/]+|/root)(?=/|$)")


def beneath(path: str, folder: str) -> bool:
    """Whether a path is the directory or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Platform:
    """What is known about the target's files.

    Args:
        job: its directory and container.
        target: the platform.
    """

    def __init__(self, job: Job, target: Target) -> None:
        self.job = job
        self.target = target
        self.folder = os.path.abspath(job.folder)
        self.current = self.folder
        """The directory against which relative paths are resolved: the program may change it."""
        self.root = _root_of(Path(self.folder))
        self._names: dict[str, list[str]] = {}

    # -- Where ------------------------------------------------------------------------------------

    @cached_property
    def working_folder(self) -> str:
        """The directory in which the run starts on the target; empty if unknown."""
        return self.job.working_folder or (
            self.folder if self.target.here and not self.job.container else ""
        )

    def absolute(self, text: str) -> str:
        """The absolute path of a path of the program: relative ones in the current directory."""
        path = posixpath.normpath(posixpath.join(self.current, text))
        # POSIX keeps two leading slashes, which mean the same on Linux.
        path = "/" + path.lstrip("/")
        if self.job.working_folder and beneath(path, self.job.working_folder):
            return posixpath.normpath(self.folder + path[len(self.job.working_folder) :])
        return path

    def shown(self, path: str) -> str:
        """A path as text for users: relative to the job directory."""
        return posixpath.relpath(path, self.folder) if beneath(path, self.folder) else path

    def travels(self, path: str) -> bool:
        """Whether the path is in the directory that is copied with the job."""
        return beneath(path, self.root)

    @property
    def _brought(self) -> bool:
        """Whether a working directory in a container certainly belongs to the job, not to the image."""
        inside = self.job.working_folder
        return not self.job.container or any(
            inside and beneath(inside, mount) for mount in self.job.mounts
        )

    # -- Existing files ----------------------------------------------------------------------------

    def there(self, path: str) -> bool | None:
        """Whether the path exists before the job starts; None if unknown."""
        exists_there = self._recorded(path)
        if exists_there is not None or beneath(path, NOWHERE):
            return exists_there
        real = self.local(path)
        if real is None:
            return None
        found = exists(real)
        if found and not self._same_case(real):
            return False
        if not found and not self.target.here and _leads_elsewhere(real):
            return None
        if not found and self.travels(path) and not self._brought:
            return None
        return found

    def _recorded(self, path: str) -> bool | None:
        """Whether the path exists according to the target's own list of files."""
        if not self.target.files:
            return None
        path = self._on_target(path)
        if self.job.mounts.get(self._own_mount(path)) in ("emptyDir", "tmpfs"):
            return None  # It is empty at first, and init containers may fill it.
        if path in self.target.files:
            return self.target.files[path]
        if any(there and beneath(text, path) for text, there in self.target.files.items()):
            return True
        if any(not there and beneath(path, text) for text, there in self.target.files.items()):
            return False
        return False if self._unlisted(path) else None

    def _unlisted(self, path: str) -> bool:
        """Whether a parent directory of the path was listed and lacks the next component."""
        while path != "/":
            folder = posixpath.dirname(path)
            if folder in self.target.listed:
                return path not in self.target.files
            path = folder
        return False

    def _on_target(self, path: str) -> str:
        place = self.job.working_folder or self.target.working_folder
        if place and not self.target.here and beneath(path, self.folder):
            return posixpath.normpath(place + path[len(self.folder) :])
        return path

    def local(self, path: str) -> str | None:
        """The location of the path on this machine; None if it has none."""
        local = self._local(path)
        return local if local is not None and readable(local) else None

    def _local(self, path: str) -> str | None:
        if self.travels(path):
            return path
        if self.job.container:
            for inside, outside in self.job.mounts.items():
                if beneath(path, inside) and self.target.here and outside.startswith("/"):
                    return posixpath.normpath(outside + path[len(inside.rstrip("/")) :])
            return None
        return path if self.target.here else None

    def is_folder(self, path: str) -> bool:
        """Whether a directory certainly exists."""
        real = self.local(path)
        if real is not None and os.path.isdir(real):
            return True
        inside = self._on_target(path).rstrip("/") + "/"
        return any(there and text.startswith(inside) for text, there in self.target.files.items())

    # -- Names ------------------------------------------------------------------------------------

    def other_case(self, path: str) -> str | None:
        """The existing path that differs only in case; None if none exists."""
        for candidate in self._siblings(path):
            if candidate.casefold() == path.casefold() and candidate != path:
                return candidate
        return None

    def near(self, path: str) -> str | None:
        """An existing path that is similar to a missing one."""
        names = {posixpath.basename(sibling): sibling for sibling in self._siblings(path)}
        found = get_close_matches(posixpath.basename(path), names, n=1, cutoff=0.7)
        if found:
            return names[found[0]]
        elsewhere = posixpath.join(self.folder, posixpath.basename(path))
        return elsewhere if elsewhere != path and self.there(elsewhere) else None

    def _siblings(self, path: str) -> Iterator[str]:
        """The contents of the parent directory; other cases of its components are tried too."""
        yield from (text for text, there in self.target.files.items() if there)
        folder = posixpath.dirname(path)
        real = self.local(folder)
        if real is None:
            return
        if not os.path.isdir(real) and folder != "/":
            actual = next(
                (
                    sibling
                    for sibling in self._siblings(folder)
                    if sibling.casefold() == folder.casefold() and is_folder(sibling)
                ),
                None,
            )
            if actual is None:
                return
            real = folder = actual
        for name in self.entries(real):
            if posixpath.join(folder, name) != path:
                yield posixpath.join(folder, name)

    def entries(self, folder: str) -> list[str]:
        """Names in a directory of this machine; empty if it cannot be read."""
        if folder not in self._names:
            try:
                with os.scandir(folder) as entries:
                    self._names[folder] = [entry.name for entry in islice(entries, _MOST_ENTRIES)]
            except OSError:
                self._names[folder] = []
        return self._names[folder]

    def _same_case(self, real: str) -> bool:
        """Whether exactly this name exists, even on a machine whose file system ignores case."""
        if sys.platform not in ("darwin", "win32") or self.target.here:
            return True
        names = self.entries(os.path.dirname(real))
        return len(names) >= _MOST_ENTRIES or os.path.basename(real) in names

    # -- Mounts and rights ------------------------------------------------------------------------

    def mount(self, path: str) -> Mount | None:
        """The mount of the target that contains a path; None if no known mount does."""
        path = self._on_target(path)
        inside = [mount for mount in self.target.mounts or () if beneath(path, mount.path)]
        found = max(inside, key=lambda mount: len(mount.path), default=None)
        # A mount of the job inside a mount of the target takes precedence.
        return None if found and len(self._own_mount(path)) > len(found.path) else found

    def _own_mount(self, path: str) -> str:
        """The job's own mount that contains a path; empty if none does."""
        return max(
            (mount for mount in self.job.mounts if beneath(path, mount)), key=len, default=""
        )

    def outside(self, path: str) -> bool:
        """Whether the path is in no mount of the target, or not mounted in the container.

        The contents of an image are unknown: a path of this machine is assumed to be missing in it.
        """
        if self.travels(path) or beneath(path, NOWHERE):
            return False
        if self.target.here and self.job.container:
            if not exists(path):
                return False
        elif not self.target.mounts or self.mount(path):
            return False
        home = self.target.user.home if self.target.user else ""
        known = (*self.job.mounts, *([home] if home else []))
        return not self.of_system(path) and not any(beneath(path, text) for text in known)

    def of_system(self, path: str) -> bool:
        """Whether the path is in a directory that every machine has."""
        return any(beneath(path, text) for text in _SYSTEM)

    def refusal(self, path: str) -> str | None:
        """Why the user cannot write to the path; None if unknown or writable."""
        mount = self.mount(path)
        if beneath(path, NOWHERE):
            return None
        if mount is not None and not mount.writable and not self._unplaced(path):
            return f"{mount.path} is mounted read-only"
        if self.job.container:
            return self._refused_in_container(path)
        if self.target.here:
            return self._refused_here(path) if readable(path) else None
        user = self.target.user
        if user is None or user.uid == 0 or user.name == "root" or not (user.name or user.home):
            return None
        if self.travels(path) or (mount and mount.path != "/"):
            return None
        home = _HOME.match(path)
        if home and user.home and not beneath(path, user.home) and home[0] != user.home:
            return f"{home[0]} is the home directory of a user other than {user.name or user.home}"
        if _SYSTEM_ONLY.match(path) or path.count("/") == 1:
            return f"only the administrator can write to {posixpath.dirname(path)}"
        return None

    def _refused_in_container(self, path: str) -> str | None:
        if mount := self._own_mount(path):
            return f"{mount} is mounted read-only" if mount in self.job.read_only else None
        user = user_of(self.job)
        if user and (_SYSTEM_ONLY.match(path) or beneath(path, "/root")):
            return f"the container runs as user {user}"
        return None

    def _unplaced(self, path: str) -> bool:
        """Whether it is in the job directory, whose location on the target is unknown."""
        placed = self.target.here or self.job.working_folder or self.target.working_folder
        return self.travels(path) and not placed

    def _refused_here(self, path: str) -> str | None:
        above = path
        while not os.path.lexists(above) and above != "/":
            above = posixpath.dirname(above)
        if os.access(above, os.W_OK):
            return None
        return f"{self.shown(above)} is not writable by the user of this machine"

    def ignored(self, path: str) -> bool:
        """Whether the job's .gitignore matches the path, so that it may exist only on the target."""
        if not self.travels(path):
            return False
        parts = posixpath.relpath(path, self.root).split("/")
        return any(
            fnmatchcase(part, pattern) or fnmatchcase("/".join(parts[: i + 1]), pattern)
            for pattern in self._ignores
            for i, part in enumerate(parts)
        )

    @cached_property
    def _ignores(self) -> tuple[str, ...]:
        try:
            with open_file(os.path.join(self.root, ".gitignore")) as file:
                lines = [line.decode("utf-8").strip() for line in islice(file, 2000)]
        except (OSError, ValueError):
            return ()
        return tuple(line.strip("/") for line in lines if line and line[0] not in "#!")


def _root_of(folder: Path) -> str:
    """The directory that is copied: the repository of the working directory, or that alone."""
    for parent in (folder, *islice(folder.parents, 8)):
        if exists(parent / ".git"):
            return str(parent)
    return str(folder)


def _leads_elsewhere(path: str) -> bool:
    """Whether a missing path passes through a link to a location on another machine."""
    while not os.path.lexists(path) and path != "/":
        path = posixpath.dirname(path)
    try:
        return os.readlink(path).startswith("/")
    except OSError:
        return False
