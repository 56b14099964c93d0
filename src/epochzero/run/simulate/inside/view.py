"""The file system as the job sees it: what the platform lacks is not there, the rest is this machine's.

A new root in memory gets this machine's folders by bind mounts. A folder of which only a part is on the
platform is rebuilt, entry by entry. What the job writes goes to the real folders, but for those with
a limit of space, which get an overlay in memory of that size.

Source: mount_namespaces(7); the kernel's documentation, filesystems/overlayfs.rst.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any

from epochzero.injected import system

_HARMLESS = system.MS_NOSUID | system.MS_NODEV
_STORE = "/.epochzero"
_USERS, _GROUPS = "/etc/passwd", "/etc/group"


def build(request: dict[str, Any]) -> None:
    """Make the view, and go into it.

    Args:
        request: `epochzero.run.simulate.plan.Request`.

    Raises:
        OSError: the system does not let us.
    """
    system.attach("", "/", flags=system.MS_REC | system.MS_PRIVATE)
    root = request["scratch"]
    # A root that only root may write to, as everywhere.
    system.attach("tmpfs", root, "tmpfs", _HARMLESS, "mode=555")
    # Else it would be seen in itself, through the folder that it lies in.
    system.attach("", root, flags=system.MS_UNBINDABLE)
    view = _PlatformView(root, request)
    view.descend("/")
    for mount in sorted(request["mounts"], key=lambda value: len(value["path"])):
        view.mount(mount)
    if request["shared_memory"] is not None:
        size = request["shared_memory"]
        system.attach("tmpfs", root + "/dev/shm", "tmpfs", _HARMLESS, f"mode=1777,size={size}")
    if request["user"]:
        view.tell_users(request["user"])
    view.let_go()
    system.pivot(root)


class _PlatformView:
    """The new root, while it is made."""

    def __init__(self, root: str, request: dict[str, Any]) -> None:
        self._root = root
        self._hidden = frozenset(request["hidden"])
        self._shown = frozenset(request["shown"])
        made = (mount["path"] for mount in request["mounts"] if not os.path.lexists(mount["path"]))
        self._rules = self._hidden | self._shown | frozenset(made)
        self._mounted = {mount["path"] for mount in request["mounts"]}
        self._begun: set[str] = set()
        self._stores = 0
        os.mkdir(root + _STORE)
        system.attach("tmpfs", root + _STORE, "tmpfs", _HARMLESS, "mode=755")

    def descend(self, folder: str) -> None:
        """Create a directory that shows a part of another one."""
        hidden = self._is_hidden(folder)
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            with suppress(PermissionError, FileNotFoundError):
                self._show(entry, hidden=hidden)

    def _show(self, entry: os.DirEntry[str], *, hidden: bool) -> None:
        path, target = entry.path, self._root + entry.path
        if self._is_hidden(path):
            if self._has_rules_below(path) and entry.is_dir(follow_symlinks=False):
                self._begin(path, target)
        elif entry.is_symlink():
            os.symlink(os.readlink(path), target)
        elif not entry.is_dir():
            os.close(os.open(target, os.O_CREAT))
            system.attach(path, target, flags=system.MS_BIND)
        elif self._has_rules_below(path) and self._differs_below(path):
            self._begin(path, target)
        else:
            os.mkdir(target)
            system.attach(path, target, flags=system.MS_BIND | system.MS_REC)

    def _begin(self, path: str, target: str) -> None:
        os.mkdir(target)
        if path in self._mounted:
            system.attach("tmpfs", target, "tmpfs", _HARMLESS)
            self._begun.add(path)
        os.chmod(target, os.stat(path).st_mode & 0o7777)
        self.descend(path)

    def _is_hidden(self, path: str) -> bool:
        """By the nearest rule on the way to it."""
        while path != "/":
            if path in self._shown:
                return False
            if path in self._hidden:
                return True
            path = os.path.dirname(path)
        return False

    def _has_rules_below(self, path: str) -> bool:
        return any(rule.startswith(path + "/") for rule in self._rules)

    def _differs_below(self, path: str) -> bool:
        """Whether something below a shown folder is not there, or is made."""
        below = (rule for rule in self._rules if rule.startswith(path + "/"))
        return any(rule not in self._shown for rule in below)

    def mount(self, mount: dict[str, Any]) -> None:
        """Show a mount as the platform has it."""
        path, target = mount["path"], self._root + mount["path"]
        if not os.path.lexists(path):
            os.makedirs(target, exist_ok=True)
            size = "" if mount["bytes"] is None else f",size={mount['bytes']}"
            system.attach("tmpfs", target, "tmpfs", _HARMLESS, f"mode=1777{size}")
        elif mount["bytes"] is not None:
            self._limited(path, target, mount["bytes"])
        elif path != "/" and path not in self._begun and os.path.exists(target):
            source = path if mount["again"] else target
            system.attach(source, target, flags=system.MS_BIND | system.MS_REC)
        if not mount["writable"]:
            system.read_only(target)

    def _limited(self, path: str, target: str, size: int) -> None:
        """An overlay: existing files are visible, and writes go to memory of this size."""
        place = f"{self._root}{_STORE}/{self._stores}"
        self._stores += 1
        os.mkdir(place)
        system.attach("tmpfs", place, "tmpfs", _HARMLESS, f"size={size}")
        upper, work = place + "/upper", place + "/work"
        os.mkdir(upper)
        os.mkdir(work)
        os.chmod(upper, os.stat(path).st_mode & 0o7777)
        for hidden in self._hidden:
            if hidden.startswith(path + "/"):
                _whiteout(upper + hidden[len(path) :])
        lower = os.open(path, os.O_PATH | os.O_DIRECTORY)
        options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
        try:
            system.attach("overlay", target, "overlay", _HARMLESS, options)
        except OSError:
            system.attach("overlay", target, "overlay", _HARMLESS, options + ",userxattr")
        finally:
            os.close(lower)

    def tell_users(self, user: dict[str, Any]) -> None:
        """The system's lists of users and groups know who runs the job."""
        name, number, group = user["name"], user["uid"], user["gid"]
        line = f"{name}:x:{number}:{group}::{user['home'] or '/'}:/bin/sh\n"
        self._replace(_USERS, [line], {name}, {number})
        groups = [f"{word}:x:{gid}:{name}\n" for word, gid in user["groups"].items()]
        self._replace(_GROUPS, groups, set(user["groups"]), {*user["groups"].values()})

    def _replace(self, path: str, lines: list[str], names: set[str], numbers: set[int]) -> None:
        if not os.path.isfile(path) or not lines:
            return
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            fields = [(line, line.split(":")) for line in stream]
        others = [
            line
            for line, words in fields
            if words[0] not in names and not (len(words) > 2 and words[2] in map(str, numbers))
        ]
        own = f"{self._root}{_STORE}/{os.path.basename(path)}"
        with open(own, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.writelines(lines + others)
        system.attach(own, self._root + path, flags=system.MS_BIND)

    def let_go(self) -> None:
        """What mounts are made of goes out of sight."""
        with suppress(OSError):
            system.detach(self._root + _STORE)
            os.rmdir(self._root + _STORE)


def _whiteout(path: str) -> None:
    """What stands in an overlay for something that is not there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
