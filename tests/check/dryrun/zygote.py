"""Forks processes from one that has torch: ``python zygote.py SOCKET``.

Importing torch takes most of the processor time of a small dry run. Here it is imported once. What is
forked runs a script, or is the launcher of a dry run. In a forked launcher everything happens as in a fresh one, up to the import of torch itself: the import
system finds it and the child's hooks adjust it, but its code is not executed again. Each request has
a socket of its own, on which the number of the process and later its exit code are reported.
"""

from __future__ import annotations

import gc
import importlib.machinery
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

CHILD = os.path.join("check", "dryrun", "child")
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

execvpe = os.execvpe


def main(control: socket.socket) -> None:
    """Serves until nobody can ask any more."""
    for name in PRELOADED:
        __import__(name)
    # A collection in a child would touch, and so copy, all pages that it shares with this process.
    gc.freeze()
    waiting: dict[int, socket.socket] = {}
    woken = wake_when_children_exit()
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            report_exits(waiting)
        if control in ready:
            data, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 16)
            if not data:
                return
            answer, *given = descriptors
            pid = os.fork()
            if pid == 0:
                launch(json.loads(data), given)
            for descriptor in given:
                os.close(descriptor)
            waiting[pid] = socket.socket(fileno=answer)
            waiting[pid].send(str(pid).encode())


def wake_when_children_exit() -> int:
    """A descriptor that can be read after a child has exited."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    return reading


def report_exits(waiting: dict[int, socket.socket]) -> None:
    """Reports the exit codes of all children that have exited."""
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with waiting.pop(pid) as answer, suppress(OSError):
            answer.send(str(os.waitstatus_to_exitcode(status)).encode())


def launch(request: dict[str, Any], given: list[int]) -> NoReturn:
    """Becomes a script or the launcher. Descriptors get the numbers that they have for the caller."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    # Out of the way first: a number may be one of those to be given.
    high = [os.dup(number) for number in given]
    while min(high) <= max(request["numbers"]):
        high = [os.dup(number) for number in high]
    for number, source in zip(request["numbers"], high, strict=True):
        os.dup2(source, number, inheritable=True)
    if "script" in request:
        sys.argv = request["script"]
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit(0)
    os.environ.clear()
    os.execvpe = become
    runpy.run_path(os.path.join(request["launcher"], "__main__.py"), run_name="__main__")
    os._exit(0)


def become(program: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    """Stands in for exec: the child of a dry run goes on in this process."""
    here = os.path.dirname(command[0]) == os.path.dirname(sys.executable)
    ours = here and os.path.dirname(command[1]).endswith(CHILD)
    if not ours or environment.keys() & {"PYTHONPATH", "PYTHONHOME"}:
        execvpe(program, command, environment)
    os.environ.clear()
    os.environ.update(environment)
    for name in [name for name in sys.modules if name.split(".")[0] == "epochzero"]:
        del sys.modules[name]
    import_again()
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering, errors="backslashreplace", closefd=False)
        for number, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
    )
    sys.argv = command[1:]
    sys.path[0] = os.path.dirname(command[1])
    runpy.run_path(command[1], run_name="__main__")
    sys.exit(0)


def import_again() -> None:
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


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
