"""Carries out `epochzero` commands in forks of a process that has imported them: ``command_server.py SOCKET MODULE ...``.

Imports and the catalogue take most of the processor time of a short `epochzero run`. A fork gets the streams,
directory, environment and arguments of a client (`command_client.py`), and is killed when its client ends.
A client's `python FILE` runs a program in the same way.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from importlib import import_module
from typing import NoReturn

from epochzero import cli, compiled
from epochzero.check.rules import builtin
from epochzero.cli.cache import cache_folder
from epochzero.run.reports.failure_report import _diagnoser

LOADED = (
    *("epochzero.check.pipeline", "epochzero.cli.run", "epochzero.run.session"),
    *("epochzero.diagnose.reading", "epochzero.run.retry.decide", "epochzero.run.watch.live"),
    *("epochzero.cli.jobs", "epochzero.cli.show", "epochzero.store.recorder"),
)
"""What a run that fails, and those who ask for it, import at different times."""


def main(address: str, *modules: str) -> None:
    """Serves until the standard input is closed."""
    folder = cache_folder()
    assert folder is not None
    compiled.use(folder / "compiled")
    for name in (*LOADED, *modules):
        import_module(name)
    _diagnoser()
    builtin()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        # A client that finds the name can connect.
        listener.bind(f"{address}.new")
        listener.listen()
        os.rename(f"{address}.new", address)
        # The tests hold the other end of the standard input: with them, the server ends.
        while 0 not in select.select([listener, 0], [], [])[0]:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _serve(client)
            client.close()
            while True:
                try:
                    if not os.waitpid(-1, os.WNOHANG)[0]:
                        break
                except ChildProcessError:
                    break


def _serve(client: socket.socket) -> NoReturn:
    """Starts the command, and reports its exit code."""
    length, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as request:
        place, words, variables = marshal.loads(request.read(int.from_bytes(length)))
    pid = os.fork()
    if pid == 0:
        client.close()
        _become(streams, place, words, variables)
    process = os.pidfd_open(pid)
    if process not in select.select([process, client], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    client.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(
    streams: list[int], place: str, words: list[str], variables: dict[str, str]
) -> NoReturn:
    """Is the process that the client would have been."""
    code: object = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = words
        if words[0] == "python":
            del sys.argv[0]
            runpy.run_path(words[0], run_name="__main__")
        else:
            cli.main()
        code = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        if not file.closed:
            file.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main(*sys.argv[1:])
