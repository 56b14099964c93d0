"""The file system as the job sees it: all of it there, none of it written to.

Every file system gets an overlay whose changes go to memory (tmpfs). An unprivileged user may not
put one over a folder with mounts below it; such a folder is rebuilt, entry by entry, and what
can have no overlay at all is read-only. ``/dev``, ``/proc`` and ``/sys`` are the job's own.

Source: the kernel's documentation, filesystems/overlayfs.rst.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import NamedTuple

from epochzero.injected import system

_OWN = ("/dev", "/proc", "/sys")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
          "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"}  # fmt: skip
# What root could change of the kernel through /proc.
_PROTECTED = ("bus", "fs", "irq", "sys", "sysrq-trigger")
_UNSEEN = frozenset({"autofs"})  # looking at one mounts what is below it
_MOST_ENTRIES = 2_000
_HARMLESS = system.MS_NOSUID | system.MS_NODEV


class Overlay(NamedTuple):
    """An overlay: where the job sees it, and descriptors of the changes and of the original."""

    path: str
    upper: int
    lower: int


def build(scratch: str, writable: list[str], size: int, partial: bool) -> list[Overlay]:
    """Make the view below a scratch folder and the root of this mount namespace.

    Args:
        scratch: an empty folder.
        writable: folders that the job is likely to write to, which get an overlay of their own: a
            folder of another user cannot be copied into an overlay, only covered by one.
        size: bytes that may be written.
        partial: some users are unknown in this user namespace.

    Raises:
        OSError: the system does not let us.
    """
    system.attach("", "/", flags=system.MS_REC | system.MS_PRIVATE)
    points = _mount_points()
    system.attach("tmpfs", scratch, "tmpfs", _HARMLESS, f"mode=700,size={size}")
    view = _View(scratch, points, partial)
    for point in points:
        with suppress(PermissionError, FileNotFoundError):
            view.show(point)
    for folder in writable if partial else []:
        view.cover(folder)
    _devices(view.root + "/dev", size)
    system.attach("/sys", view.root + "/sys", flags=system.MS_BIND | system.MS_REC)
    system.read_only(view.root + "/sys")
    _processes(view.root + "/proc")
    system.pivot(view.root)
    return view.layers


def intercepted(scratch: str) -> list[Overlay]:
    """What the interception inside the job's Python redirected, as if it were an overlay."""
    upper = scratch + "/root"
    if not os.path.isdir(upper):
        return []
    descriptors = (os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (upper, "/"))
    return [Overlay("/", *descriptors)]


class _View:
    def __init__(self, scratch: str, points: list[str], partial: bool) -> None:
        self.scratch = scratch
        self.points = points
        self.partial = partial
        self.options = ",userxattr" if partial else ""
        self.layers: list[Overlay] = []
        self.root = scratch + "/root"
        os.mkdir(self.root)
        system.attach(self.root, self.root, flags=system.MS_BIND)

    def show(self, path: str) -> None:
        """Show a folder or file: copied on write, rebuilt, or read-only."""
        if not os.path.isdir(path):
            # Not a socket: what listens on one is outside.
            if os.path.isfile(path):
                self._fixed(path)
            return
        try:
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                self._fixed(path)
            else:
                self.overlay(path)
        except OSError:
            if self._has_mounts(path):
                self._rebuild(path)
            else:
                self._fixed(path)

    def cover(self, folder: str) -> None:
        """Give a folder an overlay of its own, where it has none and may be written to."""
        known = any(layer.path == folder for layer in self.layers)
        if known or _is_own(folder) or self._has_mounts(folder) or not os.access(folder, os.W_OK):
            return
        with suppress(OSError):
            self.overlay(folder)

    def _has_mounts(self, path: str) -> bool:
        below = path.rstrip("/") + "/"
        return any(point.startswith(below) for point in self.points if point != path)

    def overlay(self, path: str) -> None:
        place = f"{self.scratch}/{len(self.layers)}"
        upper, work = place + "/upper", place + "/work"
        os.makedirs(upper, exist_ok=True)
        os.makedirs(work, exist_ok=True)
        _resemble(upper, path, self.partial)
        lower = os.open(path, os.O_PATH | os.O_DIRECTORY)
        # By descriptor, since a path may hold a comma or a colon.
        options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}{self.options}"
        try:
            system.attach("overlay", self.root + path, "overlay", _HARMLESS, options)
        except OSError:
            os.close(lower)
            raise
        self.layers.append(Overlay(path, os.open(upper, os.O_PATH | os.O_DIRECTORY), lower))

    def _fixed(self, path: str) -> None:
        system.attach(path, self.root + path, flags=system.MS_BIND)
        try:
            system.read_only(self.root + path)
        except OSError:
            # Rather nothing there than what can be written to.
            system.detach(self.root + path)
            raise

    def _rebuild(self, path: str) -> None:
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: entry.name)[:_MOST_ENTRIES]
        _resemble(self.root + path, path, self.partial)
        for entry in entries:
            target = self.root + entry.path
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir():
                os.mkdir(target)
                if entry.path not in self.points and entry.path not in _OWN:
                    with suppress(PermissionError):
                        self.show(entry.path)
            elif entry.is_file() and entry.path not in self.points:
                os.close(os.open(target, os.O_CREAT))
                self._fixed(entry.path)
            elif entry.is_file():
                os.close(os.open(target, os.O_CREAT))


def _resemble(target: str, path: str, partial: bool) -> None:
    """Give a folder the owner and mode of another; what is another user's grants what it grants us."""
    state = os.stat(path)
    mode = stat.S_IMODE(state.st_mode)
    if partial:
        mode = mode & 0o7077 | sum(bit for bit, right in _RIGHTS if os.access(path, right))
    else:
        os.chown(target, state.st_uid, state.st_gid)
    os.chmod(target, mode)


_RIGHTS = ((0o400, os.R_OK), (0o200, os.W_OK), (0o100, os.X_OK))


def _mount_points() -> list[str]:
    """The mount points of file systems, parents first, except those that the job gets its own of."""
    points: set[str] = set()
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            fields = line.split(" ")
            point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
            kind = fields[fields.index("-") + 1]
            if not _is_own(point) and kind not in _UNSEEN:
                points.add(point)
    return sorted(points)


def _is_own(path: str) -> bool:
    return f"{path}/".startswith(tuple(f"{folder}/" for folder in _OWN))


def _devices(target: str, size: int) -> None:
    system.attach("tmpfs", target, "tmpfs", system.MS_NOSUID, "mode=755")
    for name in _DEVICES:
        os.close(os.open(f"{target}/{name}", os.O_CREAT))
        system.attach(f"/dev/{name}", f"{target}/{name}", flags=system.MS_BIND)
    for name in ("pts", "shm"):
        os.mkdir(f"{target}/{name}")
    system.attach("devpts", f"{target}/pts", "devpts", options="newinstance,ptmxmode=0666")
    system.attach("tmpfs", f"{target}/shm", "tmpfs", _HARMLESS, f"mode=1777,size={size}")
    for name, goal in _LINKS.items():
        os.symlink(goal, f"{target}/{name}")


def _processes(target: str) -> None:
    system.attach("proc", target, "proc", _HARMLESS)
    for name in _PROTECTED:
        path = f"{target}/{name}"
        if os.path.exists(path):
            system.attach(path, path, flags=system.MS_BIND)
            system.read_only(path)
