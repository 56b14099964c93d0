"""Begins in the job's Python before its first line: packages, and what only Python can be held to."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from epochzero.run.simulate.child.quotas import Quota

if TYPE_CHECKING:
    from importlib.metadata import Distribution


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_BUILT_IN = ("BuiltinImporter", "FrozenImporter")
# Audit events (PEP 578) with the positions of paths that they look at, and of those that they change.
_LOOKING = {"os.listdir": (0,), "os.scandir": (0,), "os.chdir": (0,)}
_CHANGING = {
    "os.chmod": (0,), "os.link": (1,), "os.mkdir": (0,), "os.remove": (0,), "os.rename": (0, 1),
    "os.rmdir": (0,), "os.symlink": (1,), "os.truncate": (0,), "os.utime": (0,),
}  # fmt: skip
_REACHING = ("socket.connect", "socket.sendmsg", "socket.sendto")
_RESOLVING = ("socket.getaddrinfo", "socket.gethostbyname")
_STARTING_THREADS = ("_start_new_thread", "_start_joinable_thread")
_quotas: list[Quota] = []
_FORKING = ("os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen")


def request_of(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the job is held to: `epochzero.run.simulate.model.Request`."""
    with open(environment["EPOCHZERO_SIMULATED"], encoding="utf-8") as stream:
        request: dict[str, Any] = json.load(stream)
    return request


def begin_python(python: ModuleType, environment: Mapping[str, str]) -> None:
    """See `epochzero.injected.companions`."""
    request = request_of(environment)
    if request["metered"]:
        from epochzero.run.inject.child.files import replace_files

        _quotas[:] = [
            Quota(value["path"], value["bytes"], request["ledger"]) for value in request["metered"]
        ]
        replace_files(_quotas, ())
        for quota in _quotas:
            sys.addaudithook(quota.on_event)
    if request["modules"] or request["own_modules"]:
        sys.meta_path[:] = [
            finder
            if getattr(finder, "__name__", "") in _BUILT_IN
            else _MissingModuleFinder(finder, request)
            for finder in sys.meta_path
        ]
    if request["unseen"] or not request["namespaces"]:
        places = _Places(request)
        sys.addaudithook(places.on_event)
        for name in ("stat", "lstat", "access"):
            setattr(os, name, places.looking(getattr(os, name)))
    if not request["network"] and not request["namespaces"]:
        sys.addaudithook(_unreachable)
    if request["python_processes"] is not None:
        counting = _ProcessLimit(request["python_processes"])
        sys.addaudithook(counting.on_event)
        for name in _STARTING_THREADS:
            if hasattr(threading, name):
                setattr(threading, name, counting.starting(getattr(threading, name)))


def begin_torch(torch: ModuleType, _: Mapping[str, str]) -> None:
    """What torch saves is held to quotas, too."""
    if _quotas:
        from epochzero.run.inject.child.files import replace_saving

        replace_saving(torch, _quotas)


class _MissingModuleFinder:
    """A finder of modules that does not find those that the platform lacks."""

    def __init__(self, finder: Any, request: Mapping[str, Any]) -> None:
        self._finder = finder
        self._modules = frozenset(request["modules"])
        self._own_modules = frozenset(request["own_modules"])
        self._distributions = frozenset(request["distributions"])
        self._folders = tuple(os.path.join(folder, "") for folder in request["folders"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """None for what is not there, as of every finder."""
        top = name.partition(".")[0]
        lacking = top in self._modules or (top in self._own_modules and self._asked_by_job())
        if lacking and not _is_own(name):
            return None
        found: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return found

    def _asked_by_job(self) -> bool:
        """Whether the nearest frame that is not Python's own machinery of imports is the job's code."""
        frame = sys._getframe(2)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back  # type: ignore[assignment]
        path = os.path.abspath(frame.f_code.co_filename) if frame is not None else ""
        return path.startswith(self._folders) and "site-packages" not in path

    def find_distributions(self, *arguments: Any, **options: Any) -> list[Distribution]:
        """What `importlib.metadata` finds."""
        if not hasattr(self._finder, "find_distributions"):
            return []
        found = self._finder.find_distributions(*arguments, **options)
        return [v for v in found if _plain(v.metadata["Name"]) not in self._distributions]


def _is_own(name: str) -> bool:
    """Whether the job has a module of this name itself, next to its program."""
    top = name.partition(".")[0]
    folder = sys.path[0] if sys.path else ""
    return os.path.exists(os.path.join(folder, top)) or os.path.exists(
        os.path.join(folder, top + ".py")
    )


def _plain(name: str | None) -> str:
    return (name or "").lower().replace("_", "-").replace(".", "-")


class _Places:
    """Paths that are not there, and those that cannot be written, for Python."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._unseen = frozenset(request["unseen"])
        self._shown = frozenset(request["shown"])
        mounts = () if request["namespaces"] else request["mounts"]
        self._mounts = {mount["path"]: mount["writable"] for mount in mounts}

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event == "open":
            path, _, flags = arguments
            self._look(path)
            if isinstance(flags, int) and flags & _WRITES:
                self._change(path)
        for position in _LOOKING.get(event, ()):
            self._look(arguments[position])
        for position in _CHANGING.get(event, ()):
            self._look(arguments[position])
            self._change(arguments[position])

    def looking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`os.stat` and its like, which tell no hook."""

        def look(path: Any, *arguments: Any, **options: Any) -> Any:
            if function.__name__ == "access" and self._is_unseen(path):
                return False
            self._look(path)
            return function(path, *arguments, **options)

        look.__name__ = function.__name__
        return look

    def _look(self, path: Any) -> None:
        if self._is_unseen(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _is_unseen(self, path: Any) -> bool:
        """By the nearest rule on the way to it."""
        place = _absolute(path)
        while len(place) > 1:
            if place in self._unseen:
                return True
            if place in self._shown:
                return False
            place = os.path.dirname(place)
        return False

    def _change(self, path: Any) -> None:
        place = _absolute(path)
        while place and place not in self._mounts:
            place = "" if place == "/" else os.path.dirname(place)
        if place and not self._mounts[place]:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


def _absolute(path: Any) -> str:
    """Empty for what is no path, as an open file."""
    if isinstance(path, int) or path is None:
        return ""
    text = os.fsdecode(path)
    if text.startswith("/"):
        return os.path.normpath(text)
    try:
        return os.path.normpath(os.path.join(os.getcwd(), text))
    except OSError:
        return ""


def _unreachable(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: only this machine is reached."""
    if event in _REACHING:
        address = arguments[-1]
        if isinstance(address, tuple) and not _is_here(str(address[0])):
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
    elif event in _RESOLVING and arguments[0] and _is_name(os.fsdecode(arguments[0])):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1", "0.0.0.0", "::", socket.gethostname()) or host.startswith(
        "127."
    )


def _is_name(host: str) -> bool:
    """Whether somebody outside would have to be asked for its address."""
    return not (_is_here(host) or ":" in host or host.replace(".", "").isdigit())


class _ProcessLimit:
    """Refuses processes and threads beyond a number, as the kernel does with those of users."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._session = os.getsid(0)

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event in _FORKING and self._count() >= self._most:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """What starts a thread, which raises no audit event before Python 3.12."""

        def start_if_allowed(*arguments: Any, **options: Any) -> Any:
            if self._count() >= self._most:
                raise RuntimeError("can't start new thread")
            return start(*arguments, **options)

        return start_if_allowed

    def _count(self) -> int:
        """Threads of the job's session; the first of them is not the job's but its guard's."""
        found = threading.active_count()
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (os.getpid(), self._session):
                found += self._threads(name)
        return found

    def _threads(self, process: str) -> int:
        try:
            with open(f"/proc/{process}/stat", "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            return 0
        return int(fields[17]) if int(fields[3]) == self._session else 0
