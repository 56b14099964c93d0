"""Run EpochZero as another operating system would let it: ``emulate.py macos|windows ARGS...``.

What Python has only on Linux, and on POSIX for Windows, is blocked or removed after the standard library has been
imported: modules, functions of `os` and `signal`, and the files in ``/proc``. The interpreter, paths and system calls
stay those of Linux, so that this proves which interfaces are used, not that they work there.
"""

from __future__ import annotations

import contextlib
import enum
import importlib.abc
import os
import select
import signal
import subprocess
import sys
import sysconfig
import types

POSIX_MODULES = (
    "fcntl",
    "grp",
    "pwd",
    "pty",
    "resource",
    "termios",
    "tty",
    "syslog",
    "_posixshmem",
)
LINUX_OS = (
    "memfd_create",
    "pidfd_open",
    "posix_fadvise",
    "prlimit",
    "sched_getaffinity",
    "sched_setaffinity",
    "setns",
    "splice",
    "unshare",
    "getrandom",
    "O_PATH",
)
POSIX_OS = (
    "fork",
    "forkpty",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "getloadavg",
    "getpgid",
    "getpgrp",
    "getpriority",
    "getsid",
    "getuid",
    "killpg",
    "mkfifo",
    "nice",
    "openpty",
    "setpgid",
    "setsid",
    "statvfs",
    "sysconf",
    "tcgetpgrp",
    "uname",
    "wait3",
    "wait4",
    "waitid",
    "O_CLOEXEC",
    "O_DIRECTORY",
    "O_NOFOLLOW",
    "O_NONBLOCK",
)
POSIX_SIGNALS = (
    "SIGALRM",
    "SIGCHLD",
    "SIGCONT",
    "SIGHUP",
    "SIGKILL",
    "SIGPIPE",
    "SIGQUIT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGUSR1",
    "SIGUSR2",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
    "pthread_sigmask",
    "setitimer",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
)


WINDOWS_SIGNALS = {
    "SIGINT": 2,
    "SIGILL": 4,
    "SIGFPE": 8,
    "SIGSEGV": 11,
    "SIGTERM": 15,
    "SIGBREAK": 21,
    "SIGABRT": 22,
}

LOADED_BEFORE = (
    "asyncio",
    "click.testing",
    "ctypes",
    "multiprocessing.connection",
    "multiprocessing.pool",
    "multiprocessing.popen_fork",
    "multiprocessing.popen_forkserver",
    "multiprocessing.popen_spawn_posix",
    "shutil",
    "tempfile",
    "threading",
)
"""What decides when it is imported which system this is; click is missing in the guard of a job."""


class Blocked(importlib.abc.MetaPathFinder):
    """Modules that the system does not have."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Nothing, or an error for a module that does not exist there."""
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def emulate(system: str) -> None:
    """From now on this process is one of that system, as far as Python can tell."""
    # dateutil, which matplotlib imports, reads the registry of Windows.
    for name in (*LOADED_BEFORE, *(["dateutil.tz"] if "study" in sys.argv else [])):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sysconfig.get_config_vars()
    if system == "windows":
        subprocess.Popen.kill = subprocess.Popen.terminate  # as it is there
    _without_proc()
    for name in LINUX_OS:
        vars(os).pop(name, None)
    vars(select).pop("epoll", None)
    vars(signal).pop("sigtimedwait", None)
    if system == "windows":
        # Python itself starts processes, which Windows does in another way.
        context, tracker = (
            importlib.import_module(f"multiprocessing.{name}")
            for name in ("context", "resource_tracker")
        )
        for method in ("fork", "forkserver"):
            context._concrete_contexts.pop(method)
        tracker.signal = types.SimpleNamespace(**vars(signal))
        for name in POSIX_OS:
            vars(os).pop(name, None)
        for name in POSIX_SIGNALS:
            vars(signal).pop(name, None)
        for name in POSIX_MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, Blocked(POSIX_MODULES))
        sys.platform = "win32"
        shutil = importlib.import_module("shutil")
        shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda _: False)
        shutil._use_fd_functions = False
        platform = importlib.import_module("platform")
        platform.win32_ver = lambda *_: ("10", "10.0.1", "", "")
        sys.getwindowsversion = lambda: (10, 0)  # type: ignore[attr-defined]
        signal.Signals = enum.IntEnum("Signals", WINDOWS_SIGNALS)  # type: ignore[misc]
        signal.SIGBREAK = signal.Signals(21)  # type: ignore[attr-defined]
        asyncio = importlib.import_module("asyncio")
        asyncio.ProactorEventLoop = asyncio.SelectorEventLoop  # type: ignore[attr-defined]
    else:
        sys.platform = "darwin"
        proxies = types.ModuleType("_scproxy")  # the settings of the system's network
        vars(proxies).update(_get_proxy_settings=dict, _get_proxies=dict)
        sys.modules["_scproxy"] = proxies
        _emulate_in_children()


def _emulate_in_children() -> None:
    """The guard of a job, and what contains a dry run, are processes of their own: they are emulated too."""
    before = (
        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import emulate; "
        "emulate.emulate('macos'); sys.path.pop(0)\n"
    )
    with contextlib.suppress(ImportError):
        from epochzero.run.process import guard_process

        if "emulate" not in guard_process._PROGRAM:
            guard_process._PROGRAM = before + guard_process._PROGRAM
    with contextlib.suppress(ImportError):
        from epochzero.check.dryrun import contain, process

        inside = str(contain._INSIDE)
        program = f"{before}import runpy; runpy.run_path({inside!r}, run_name='__main__')"
        process.launcher = lambda: (sys.executable, "-I", "-S", "-c", program)


def _without_proc() -> None:
    def absent(path: object) -> bool:
        return isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith("/proc")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and absent(arguments[0]):
            raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))

    sys.addaudithook(hook)
    for name in ("stat", "lstat", "readlink", "access"):
        real = getattr(os, name)

        def guarded(path: object, *rest: object, _real: object = real, **options: object) -> object:
            if absent(path):
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return _real(path, *rest, **options)  # type: ignore[operator]

        setattr(os, name, guarded)


def main() -> None:
    """Runs one command, or several with `---` between them, until one fails."""
    emulate(sys.argv[1])
    from epochzero.cli import main

    words = sys.argv[2:]
    while words:
        end = words.index("---") if "---" in words else len(words)
        sys.argv = ["epochzero", *words[:end]]
        words = words[end + 1 :]
        with contextlib.suppress(SystemExit) if words else contextlib.nullcontext():
            main()


if __name__ == "__main__":
    main()
