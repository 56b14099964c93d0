"""What Python code writes goes to a folder that stands for the root of the file system.

What it reads comes from there first. Functions of `os` and `open` are replaced, and so are those of a
few libraries that open files in compiled code.
"""

from __future__ import annotations

import builtins
import errno
import functools
import glob
import importlib.abc
import importlib.machinery
import io
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS = ("/dev/", "/proc/self/fd/")

# Functions of `os` by what they do to the path that they are given first.
_READ = ("stat", "lstat", "access", "readlink", "chdir", "statvfs", "getxattr", "listxattr")
_CHANGE = ("chmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr")
_CREATE = ("mkdir", "mkfifo", "mknod")
_DELETE = ("unlink", "remove", "rmdir")
_MOVE = ("rename", "replace")
_LINK = ("link", "symlink")

_MOST_LINKS = 40  # as the kernel

# Modules of the standard library that keep functions of `os` under names of their own.
_KEEPING = (glob.__name__, pathlib.__name__, "pathlib._abc", "pathlib._local", "pathlib._os")

# Compiled functions that open a file by its path: module, name, position of the path, writes it.
_COMPILED = (
    ("torch._C", "PyTorchFileWriter", 0, True),
    ("torch._C", "PyTorchFileReader", 0, False),
    ("safetensors._safetensors_rust", "serialize_file", 1, True),
    ("safetensors._safetensors_rust", "safe_open", 0, False),
    ("_sqlite3", "connect", 0, True),
)


def redirect(scratch: str, emit: Callable[[dict[str, Any]], None]) -> None:
    """Redirect from here on.

    Args:
        scratch: a folder; what is written goes to its ``root``.
        emit: takes the records ``deleted``.
    """
    view = _View(scratch, emit)
    before = {**vars(os), "open_file": io.open}
    _redirect_open(view)
    _redirect_paths(view)
    _redirect_listing(view)
    after = {**vars(os), "open_file": io.open}
    changed = [name for name in before if before[name] is not after[name]]
    _rebind({before[name]: after[name] for name in changed})
    sys.meta_path.insert(0, _Finder(view))
    # The variant that works on descriptors goes around paths.
    shutil._use_fd_functions = False  # type: ignore[attr-defined]


def _rebind(replaced: dict[Any, Any]) -> None:
    """Replace the functions where modules of the standard library have kept them.

    These are imported by now: a class that took one of our functions would make it a method.
    """
    for module in (sys.modules[name] for name in _KEEPING if name in sys.modules):
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for holder in (module, *classes):
            for name, value in list(vars(holder).items()):
                kept = getattr(value, "__func__", value)
                if isinstance(kept, (BuiltinFunctionType, FunctionType)) and kept in replaced:
                    new = replaced[kept]
                    setattr(holder, name, new if holder is module else staticmethod(new))


class _View:
    """Where a path of the job is to be found, and where it may be changed."""

    def __init__(self, scratch: str, emit: Callable[[dict[str, Any]], None]) -> None:
        self.scratch = scratch
        self.root = os.path.join(scratch, "root")
        self.emit = emit
        self.deleted: set[str] = set()
        self.original = {name: getattr(os, name) for name in ("lstat", "listdir", "readlink")}
        self.open = io.open
        self.makedirs = os.makedirs
        self.working = os.getcwd
        os.makedirs(self.root, exist_ok=True)

    def absolute(self, path: Any, follow: bool = True) -> str:
        """A path as the job means it, without links: one in scratch must not lead out of it.

        Args:
            path: of the job; its ``..`` are what its text says.
            follow: the last part too, where it is a link.
        """
        whole = self._whole(path)
        done = "/"
        waiting = whole.split("/")[:0:-1]
        links = 0
        while waiting:
            done = os.path.join(done, waiting.pop())
            target = self._target(done) if follow or waiting else None
            if target is not None and links < _MOST_LINKS:
                links += 1
                done = os.path.normpath(os.path.join(os.path.dirname(done), target))
                waiting += done.split("/")[:0:-1]
                done = "/"
        return done

    def _whole(self, path: Any) -> str:
        text = os.fsdecode(path)
        if not text.startswith("/"):
            text = os.path.join(self.folder(), text)
        return "/" + os.path.normpath(text).lstrip("/")

    def _target(self, whole: str) -> str | None:
        """Where a link leads; None for what is none."""
        for place in (self.root + whole, whole):
            if place == whole and self.gone(whole):
                return None
            try:
                return os.fsdecode(self.original["readlink"](place))
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                return None
        return None

    def folder(self) -> str:
        """The working folder as the job means it."""
        real = self.working()
        inside = real.startswith(self.root + "/")
        return real[len(self.root) :] if inside else real

    def untouched(self, path: Any) -> bool:
        """Not a path of the file system that stands for: a descriptor, a device, scratch itself."""
        if isinstance(path, int):
            return True
        whole = self._whole(path)
        return whole.startswith((*HARMLESS, self.scratch + "/")) or whole == self.scratch

    def exists(self, path: str) -> bool:
        try:
            self.original["lstat"](path)
        except (OSError, ValueError):
            return False
        return True

    def gone(self, path: str) -> bool:
        """It was deleted, or a folder above it."""
        while path != "/":
            if path in self.deleted:
                return True
            path = os.path.dirname(path)
        return False

    def seen(self, path: Any, follow: bool = True) -> Any:
        """Where to read a path."""
        if self.untouched(path):
            return path
        whole = self.absolute(path, follow)
        changed = self.root + whole
        return changed if self.exists(changed) or self.gone(whole) else path

    def ours(self, path: Any, keep: bool = True, follow: bool = True) -> Any:
        """Where to change a path; an existing file is copied first."""
        if self.untouched(path):
            return path
        whole = self.absolute(path, follow)
        changed = self.root + whole
        above = os.path.dirname(whole)
        if self.exists(self.seen(above)):
            self.makedirs(os.path.dirname(changed), exist_ok=True)
        if keep and not self.exists(changed) and self.exists(whole) and not self.gone(whole):
            self._copy(whole, changed)
        return changed

    def _copy(self, whole: str, changed: str) -> None:
        if os.path.islink(whole):
            os.symlink(self.original["readlink"](whole), changed)
        elif os.path.isdir(whole):
            self.makedirs(changed, exist_ok=True)
        else:
            with self.open(whole, "rb") as before, self.open(changed, "wb") as after:
                shutil.copyfileobj(before, after)

    def forget(self, path: Any) -> None:
        """Note that a path is deleted."""
        if not self.untouched(path):
            whole = self.absolute(path, follow=False)
            if self.exists(whole):
                self.deleted.add(whole)
                self.emit({"kind": "deleted", "path": whole})

    def restore(self, path: Any) -> None:
        """Note that a path exists again, without its former contents."""
        if not self.untouched(path):
            whole = self.absolute(path, follow=False)
            if self.gone(whole) and os.path.isdir(self.root + whole) and self.exists(whole):
                self.deleted.update(os.path.join(whole, n) for n in self.original["listdir"](whole))
            self.deleted.discard(whole)

    def names(self, path: Any) -> list[str]:
        """What a folder holds."""
        whole = self.absolute(path)
        changed = self.root + whole
        found: set[str] = set()
        if self.exists(changed):
            found.update(self.original["listdir"](changed))
        if not self.gone(whole) and self.exists(whole):
            before = self.original["listdir"](whole)
            found.update(n for n in before if os.path.join(whole, n) not in self.deleted)
        elif not self.exists(changed):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return sorted(found)


# -- Redirection -------------------------------------------------------------------------------


def _redirect_open(view: _View) -> None:
    plain, low = io.open, os.open

    @functools.wraps(plain)
    def open_file(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if "opener" in named or len(rest) > 5:
            return plain(file, mode, *rest, **named)
        if not set(mode) & set("wax+"):
            return plain(view.seen(file), mode, *rest, **named)
        if "x" in mode and view.exists(view.seen(file)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), file)
        place = view.ours(file, keep="w" not in mode)
        view.restore(file)
        return plain(place, mode, *rest, **named)

    @functools.wraps(low)
    def open_descriptor(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if named.get("dir_fd") is not None:
            return low(path, flags, *rest, **named)
        if not flags & WRITES:
            return low(view.seen(path), flags, *rest, **named)
        if flags & os.O_EXCL and view.exists(view.seen(path)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        place = view.ours(path, keep=not flags & os.O_TRUNC)
        view.restore(path)
        return low(place, flags, *rest, **named)

    builtins.open = io.open = open_file
    os.open = open_descriptor


def _redirect_paths(view: _View) -> None:
    for names, wrap in ((_READ, _reading), (_CHANGE, _changing), (_CREATE, _creating),
                        (_DELETE, _deleting), (_MOVE, _moving), (_LINK, _linking)):  # fmt: skip
        for name in names:
            if hasattr(os, name):
                original = getattr(os, name)
                wrapped = functools.wraps(original)(wrap(view, original))
                setattr(os, name, wrapped)
                for supports in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
                    if original in supports:
                        supports.add(wrapped)
    os.getcwd = view.folder


def _by_path(named: dict[str, Any]) -> bool:
    return all(named.get(n) is None for n in ("dir_fd", "src_dir_fd", "dst_dir_fd"))


def _reading(view: _View, original: Any) -> Any:
    itself = original.__name__ in ("lstat", "readlink")

    def read(path: Any, *rest: Any, **named: Any) -> Any:
        follow = not itself and named.get("follow_symlinks", True)
        return original(view.seen(path, follow) if _by_path(named) else path, *rest, **named)

    return read


def _changing(view: _View, original: Any) -> Any:
    def change(path: Any, *rest: Any, **named: Any) -> Any:
        return original(view.ours(path) if _by_path(named) else path, *rest, **named)

    return change


def _creating(view: _View, original: Any) -> Any:
    def create(path: Any, *rest: Any, **named: Any) -> Any:
        if not _by_path(named):
            return original(path, *rest, **named)
        if view.exists(view.seen(path, follow=False)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        result = original(view.ours(path, keep=False, follow=False), *rest, **named)
        view.restore(path)
        return result

    return create


def _deleting(view: _View, original: Any) -> Any:
    def delete(path: Any, **named: Any) -> None:
        if not _by_path(named) or view.untouched(path):
            original(path, **named)
            return
        place = view.seen(path, follow=False)
        if os.path.isdir(place) and not os.path.islink(place) and view.names(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        original(view.ours(path, follow=False), **named)
        view.forget(path)

    return delete


def _moving(view: _View, original: Any) -> Any:
    def move(src: Any, dst: Any, **named: Any) -> None:
        if not _by_path(named):
            original(src, dst, **named)
            return
        _bring(view, src)
        original(view.ours(src, follow=False), view.ours(dst, keep=False, follow=False), **named)
        view.restore(dst)
        view.forget(src)

    return move


def _bring(view: _View, path: Any) -> None:
    """Copy all below a folder, which is to be moved."""
    place = view.seen(path, follow=False)
    if not view.untouched(path) and os.path.isdir(place) and not os.path.islink(place):
        view.ours(path)
        for name in view.names(path):
            _bring(view, os.path.join(view.absolute(path), os.fsdecode(name)))
    else:
        view.ours(path, follow=False)


def _linking(view: _View, original: Any) -> Any:
    hard = original is os.link

    def link(src: Any, dst: Any, *rest: Any, **named: Any) -> Any:
        if not _by_path(named):
            return original(src, dst, *rest, **named)
        if view.exists(view.seen(dst, follow=False)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), dst)
        place = view.ours(dst, keep=False, follow=False)
        view.restore(dst)
        return original(view.ours(src) if hard else src, place, *rest, **named)

    return link


def _redirect_listing(view: _View) -> None:
    plain_list, plain_scan = os.listdir, os.scandir

    @functools.wraps(plain_list)
    def listdir(path: Any = ".") -> list[Any]:
        if path is None or isinstance(path, int) or view.untouched(path):
            return plain_list(path)
        names = view.names(path)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    @functools.wraps(plain_scan)
    def scandir(path: Any = ".") -> Any:
        if path is None or isinstance(path, int) or view.untouched(path):
            return plain_scan(path)
        # Names that were not touched keep their quick entries.
        return _Scan(os.fspath(path), view.names(path))

    os.listdir, os.scandir = listdir, scandir


class _Scan:
    """What `os.scandir` gives: an iterator and a context."""

    def __init__(self, folder: Any, names: list[str]) -> None:
        self._entries = iter([_Entry(folder, name) for name in names])

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""


class _Entry:
    """What `os.scandir` gives for each name."""

    def __init__(self, folder: Any, name: str) -> None:
        self.name = os.fsencode(name) if isinstance(folder, bytes) else name
        self.path = os.path.join(folder, self.name)

    def __fspath__(self) -> Any:
        return self.path

    def inode(self) -> int:
        """The number of the file."""
        return os.lstat(self.path).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """A folder."""
        return os.path.isdir(self.path) and (follow_symlinks or not self.is_symlink())

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """A regular file."""
        return os.path.isfile(self.path) and (follow_symlinks or not self.is_symlink())

    def is_symlink(self) -> bool:
        """A symbolic link."""
        return os.path.islink(self.path)

    def is_junction(self) -> bool:
        """Never, outside Windows."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Its state."""
        return os.stat(self.path) if follow_symlinks else os.lstat(self.path)


class _Finder(importlib.abc.MetaPathFinder):
    """Wraps the functions of `_COMPILED` when their modules are imported."""

    def __init__(self, view: _View) -> None:
        self.view = view

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        functions = [entry for entry in _COMPILED if entry[0] == fullname]
        if not functions:
            return None
        # Those in front may ask this one themselves, as that of the dry run does.
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in behind)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader, functions)
        return spec

    def _wrap(self, loader: Any, functions: list[tuple[str, str, int, bool]]) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for _, name, position, writes in functions:
                if hasattr(module, name):
                    place = self.view.ours if writes else self.view.seen
                    setattr(module, name, _placed(getattr(module, name), position, place))

        loader.exec_module = exec_module


def _placed(original: Any, position: int, place: Callable[[Any], Any]) -> Any:
    @functools.wraps(original, updated=())
    def call(*given: Any, **named: Any) -> Any:
        arguments = list(given)
        if len(arguments) > position and isinstance(arguments[position], (str, os.PathLike)):
            arguments[position] = place(arguments[position])
        return original(*arguments, **named)

    return call
