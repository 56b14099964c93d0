"""Builds the simulated platform around this process, and becomes the job: ``REQUEST COMMAND...``.

The folder is run by path, isolated (``python -I -S FOLDER``), so that it starts within milliseconds. The
request is a file with the JSON form of `epochzero.run.simulate.plan.Request`. Without a command it only
tries: nothing on standard output means that it can be built, else why not.

Mounts are those of this process's own namespace: they are gone when the job is.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from contextlib import suppress
from typing import Any, NoReturn

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))

from epochzero.injected import namespaces, system
from epochzero.run.simulate.inside import view
from epochzero.run.simulate.inside.ranks import run_ranks

_NOT_BUILT = 125
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def main(path: str, command: list[str]) -> None:
    """Build, then run the command; see the module."""
    with open(path, encoding="utf-8") as stream:
        request = json.load(stream)
    try:
        _build(request)
    except OSError as error:
        if not command:
            sys.stdout.write(str(error) or type(error).__name__)
            return
        sys.stderr.write(f"epochzero: the platform could not be simulated: {error}\n")
        sys.exit(_NOT_BUILT)
    if command and request["ranks"]:
        sys.exit(run_ranks(command, request["ranks"]))
    if command:
        _become(command)


def _build(request: dict[str, Any]) -> None:
    folder = os.getcwd()
    if request["namespaces"]:
        flags = system.CLONE_NEWNS | (0 if request["network"] else system.CLONE_NEWNET)
        user = request["user"] or {}
        namespaces.leave(flags, user.get("uid", os.geteuid()), user.get("gid", os.getegid()))
        if not request["network"]:
            system.loopback_up()
        view.build(request)
        os.chdir(folder)
    _limit(request["limits"])


def _limit(limits: dict[str, int]) -> None:
    if "open_files" in limits:
        count = limits["open_files"]
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    if "processes" in limits:
        count = limits["processes"]
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
    if "cpus" in limits:
        own = sorted(os.sched_getaffinity(0))
        if limits["cpus"] < len(own):
            os.sched_setaffinity(0, own[: limits["cpus"]])
            with suppress(OSError):  # A kernel without filters of system calls.
                system.ignore_affinity()


def _become(command: list[str]) -> NoReturn:
    """As a shell does, also in what it says."""
    try:
        os.execvp(command[0], command)
    except OSError as error:
        missing = error.errno == errno.ENOENT
        why = "command not found" if missing else os.strerror(error.errno or 0)
        with suppress(OSError):
            sys.stderr.write(f"epochzero: {command[0]}: {why}\n")
        sys.exit(_NOT_FOUND if missing else _NOT_EXECUTABLE)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
