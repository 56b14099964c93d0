"""Starts dry runs in forks of a process that has imported torch: ``python fork_server.py SOCKET CHILD``.

Importing torch takes most of the processor time of a small dry run. Here it is imported once. What is forked is the
launcher of a dry run; it builds the containment as always. Only where it would execute the job's Python, this
process continues as that Python instead: the import system finds torch and the child's hooks adjust it, but its
code is not executed again. It does so only if a fresh process would import the same: the same interpreter, files and
environment, and no file of the job with the name of a module that is loaded here.

The file is run by its path, in the job's Python, with the environment of a dry run: the job can read the memory of
this process. Each request has a socket of its own, on which the number of the process and later its exit code
are reported; the process is killed when the other end is closed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

HOOKED = ("numpy", "torch", "torch.distributed.checkpoint.default_planner")
"""What the child adjusts as soon as it is imported, of what is imported here."""
PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch._subclasses.fake_tensor",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.fx.experimental.symbolic_shapes",
    "torch.optim",
    "torch.utils.data",
)
READ_BY_LIBRARIES = (
    "AOTI", "ATEN", "BLIS_", "C10", "CUDA", "GLIBC_", "GLOO_", "GOMP_", "GOTO_", "HIP", "HSA_", "KMP_",
    "LANG", "LC_", "LD_", "LIBC_", "LOCPATH", "MALLOC_", "MKL", "NCCL_", "NPY_", "NUMPY_", "NVIDIA_",
    "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH", "ROC", "TORCH", "TRITON_", "TZ",
)  # fmt: skip
"""Variables that compiled code may read when it is loaded; what Python code reads is observed."""
READ_LATER = ("GLOO_SOCKET_IFNAME", "TORCHELASTIC_", "TORCH_DISTRIBUTED_DEBUG")
"""Exceptions, which launchers of several processes set: read when processes connect, or again in each fork."""
_LARGEST_REQUEST = 1 << 16
_MOST_DESCRIPTORS = 16

Launch = Callable[[dict[str, Any], list[int]], NoReturn]
_execvpe = os.execvpe


class ReadVariables:
    """Which variables are read by name while modules are imported, and which they change.

    A copy of all variables reads none by name.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._before = dict(os.environ)
        original: Any = type(os.environ)
        names = self.names

        class Observed(original):  # type: ignore[misc]
            copied: Iterator[str] = iter(())

            def __iter__(self) -> Iterator[str]:
                listed = list(super().__iter__())
                self.copied = iter(listed)
                return iter(listed)

            def __getitem__(self, name: str) -> str:
                # Whoever copies looks all names up in their order.
                if name != next(self.copied, None):
                    self.copied = iter(())
                    names.add(name)
                value: str = super().__getitem__(name)
                return value

        self._original = original
        os.environ.__class__ = Observed

    def stop(self) -> dict[str, str | None]:
        """The variables that have changed, None for those that were removed."""
        os.environ.__class__ = self._original
        after = dict(os.environ)
        return {
            name: after.get(name)
            for name in self._before.keys() | after.keys()
            if after.get(name) != self._before.get(name)
        }


def matters(name: str, read: Collection[str]) -> bool:
    """Whether what is imported can depend on a variable."""
    return name in read or (name.startswith(READ_BY_LIBRARIES) and not name.startswith(READ_LATER))


def fits(first: Mapping[str, str], second: Mapping[str, str], read: Collection[str]) -> bool:
    """Whether two environments have the same values for all variables that matter."""
    names = [name for name in first.keys() | second.keys() if matters(name, read)]
    return all(first.get(name) == second.get(name) for name in names)


def is_same_python(first: str, second: str) -> bool:
    """Whether two paths are names of the same interpreter in the same environment, such as python and python3."""
    return os.path.dirname(first) == os.path.dirname(second) and (
        os.path.realpath(first) == os.path.realpath(second)
    )


class PreloadedModules:
    """The modules that are loaded here, and what they depend on.

    Raises:
        ImportError: the Python has no torch.
    """

    def __init__(self, child: str) -> None:
        self.child = child
        self.environment = dict(os.environ)
        # Bytecode of a library would be listed among the files that the job writes.
        sys.dont_write_bytecode = True
        self._own = sys.path.pop(0)
        self._path = list(sys.path)
        initial = set(sys.modules)
        variables = ReadVariables()
        importlib.import_module(PRELOADED[0])
        for name in PRELOADED[1:]:
            with suppress(ImportError):
                importlib.import_module(name)
        self._changed = variables.stop()
        self.read = variables.names - self._changed.keys()
        # What this file imports, a fresh process would not have imported before the job.
        loaded = {"runpy", "select"} | set(sys.modules) - initial
        self._top = {name.partition(".")[0] for name in loaded}
        self._files = _states()
        self._current = True

    def stands_in_for(self, command: list[str], environment: dict[str, str]) -> bool:
        """Whether this process, as it is, is what executing the command would become."""
        return (
            is_same_python(command[0], sys.executable)
            and command[1] == self.child
            and fits(environment, self.environment, self.read)
            and self._current
            and not self._is_hidden(json.loads(_whole(int(command[2]))))
        )

    def _is_hidden(self, spec: Mapping[str, Any]) -> bool:
        """Whether the job has a file or directory with the name of a loaded module, which it would import instead."""
        script = spec.get("script")
        folders = {os.getcwd(), *spec["roots"], *([os.path.dirname(script)] if script else [])}
        for folder in folders:
            with suppress(OSError):
                names = {name.partition(".")[0] for name in os.listdir(folder or ".")}
                if not names.isdisjoint(self._top):
                    return True
        return False

    def execute(self, program: str, command: list[str], environment: dict[str, str]) -> NoReturn:
        """Stands in for `os.execvpe`: the child of a dry run continues in this process."""
        try:
            continues = self.stands_in_for(command, environment)
        except (IndexError, OSError, ValueError):
            continues = False
        if not continues:
            _execvpe(program, command, environment)
        os.environ.clear()
        os.environ.update(environment)
        for name, value in self._changed.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for name in [name for name in sys.modules if name.split(".")[0] == "epochzero"]:
            del sys.modules[name]
        _set_debug_level()
        _import_again()
        _seed()
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, buffering, errors="backslashreplace", closefd=False)
            for number, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
        )
        sys.executable = command[0]
        sys.argv = command[1:]
        sys.path[:] = [os.path.dirname(command[1]), *self._path]
        runpy.run_path(command[1], run_name="__main__")
        sys.exit(0)

    def launch(self, request: dict[str, Any], given: list[int]) -> NoReturn:
        """Becomes the launcher, with the descriptors at the numbers that they have for whoever asks."""
        place(request["numbers"], given)
        # In the view of the containment, directories have other times.
        self._current = _states() == self._files
        os.environ.clear()
        os.execvpe = self.execute  # type: ignore[assignment]
        runpy.run_path(os.path.join(request["launcher"], "__main__.py"), run_name="__main__")
        os._exit(0)


def _states() -> dict[str, tuple[int, int]]:
    """Size and time of the files of all loaded modules, and of the directories in which modules are searched."""
    found = {}
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for file in (*files, *sys.path):
        if file:
            with suppress(OSError):
                state = os.stat(file)
                found[file] = (state.st_size, state.st_mtime_ns)
    return found


def _whole(descriptor: int) -> bytes:
    """The contents of a file, whose position is left alone."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _import_again() -> None:
    """Lets the modules that are hooked be imported again, without executing their code."""
    held = {name: sys.modules.pop(name) for name in HOOKED if name in sys.modules}
    loader: Any = importlib.machinery.SourceFileLoader
    execute = loader.exec_module

    def create_module(self: Any, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return held.get(spec.name)

    def exec_module(self: Any, module: ModuleType) -> None:
        if held.pop(module.__name__, None) is None:
            execute(self, module)

    loader.create_module, loader.exec_module = create_module, exec_module


def _set_debug_level() -> None:
    """Reads ``TORCH_DISTRIBUTED_DEBUG`` as importing torch.distributed does."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available():
        distributed.set_debug_level_from_env()


def _seed() -> None:
    """Seeds the generator that NumPy seeds when it is imported; `random` does so after each fork."""
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()


def place(numbers: list[int], given: list[int]) -> None:
    """Begins a forked process: a session of its own, and descriptors at these numbers."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    # Out of the way first: a number may be one of those to be given.
    high = [os.dup(number) for number in given]
    while min(high) <= max(numbers):
        high = [os.dup(number) for number in high]
    for number, source in zip(numbers, high, strict=True):
        os.dup2(source, number, inheritable=True)


# -- The server --------------------------------------------------------------------------------


def serve(control: socket.socket, launch: Launch) -> None:
    """Fork for each request, until nobody can ask any more."""
    # A collection in a fork would touch, and so copy, all pages that it shares with this process.
    gc.freeze()
    waiting: dict[int, socket.socket] = {}
    woken = _wake_when_children_exit()
    while True:
        sources: list[Any] = [control, woken, *waiting.values()]
        ready, _, _ = select.select(sources, [], [])
        for pid, answer in list(waiting.items()):
            if answer in ready:
                # Nothing is ever sent here: the other end is closed.
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                waiting.pop(pid).close()
        if woken in ready:
            os.read(woken, 4096)
            _report_exits(waiting)
        if control in ready:
            data, descriptors, _, _ = socket.recv_fds(control, _LARGEST_REQUEST, _MOST_DESCRIPTORS)
            if not data:
                for pid in waiting:
                    os.killpg(pid, signal.SIGKILL)
                return
            reply, *given = descriptors
            pid = os.fork()
            if pid == 0:
                launch(json.loads(data), given)
            for descriptor in given:
                os.close(descriptor)
            waiting[pid] = socket.socket(fileno=reply)
            waiting[pid].send(str(pid).encode())


def _wake_when_children_exit() -> int:
    """A descriptor that can be read after a child has exited."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    return reading


def _report_exits(waiting: dict[int, socket.socket]) -> None:
    """Reports the exit codes of all children that have exited."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid in waiting:
                with waiting.pop(pid) as answer, suppress(OSError):
                    answer.send(str(os.waitstatus_to_exitcode(status)).encode())


def main(
    control: socket.socket, child: str, kind: type[PreloadedModules] = PreloadedModules
) -> None:
    """Imports torch, reports which variables it read, and serves."""
    try:
        preloaded = kind(child)
    except ImportError:
        return
    control.send(json.dumps(sorted(preloaded.read)).encode())
    serve(control, preloaded.launch)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
