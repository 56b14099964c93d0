"""Runs a job's command under containment: a request on standard input, an account on standard output.

The folder is run by path, isolated (``python -I -S FOLDER``), so that it starts within
milliseconds: it imports the standard library and its own modules only. With namespaces there are
three processes: this one, the keeper (process 1 of the namespaces, whose end is the end of all that
is in them) and the job. Without, this one is the keeper.

Request: ``{"command", "folder", "environment", "scratch", "writable", "keep", "how", "limits", "spec",
"records", "output"}``, the last three numbers of open descriptors. What was written is copied to the
folder ``keep``, unless that is empty. An empty command only tries whether the containment can be built.
Account: ``{"refused"}``, or ``{"status", "limit", "memory_bytes", "processes", "changes",
"left_out"}``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from types import ModuleType
from typing import Any, NoReturn

_FIRST_FREE = 5  # after the standard three, the specification and the records
_THREADS_EACH = 16


def _import_from_here() -> None:
    """Make the modules next to this one importable by their names, without their package."""
    here = os.path.dirname(os.path.abspath(__file__))
    name = "epochzero.check.dryrun.contain.inside"
    while name:
        package = ModuleType(name)
        package.__path__ = [here]
        sys.modules[name] = package
        name = name.rpartition(".")[0]
        here = os.path.dirname(here)


_import_from_here()

from epochzero.check.dryrun.contain.inside import landlock, view, watch  # noqa: E402
from epochzero.check.dryrun.contain.inside.changes import changes_of  # noqa: E402
from epochzero.injected import namespaces, system  # noqa: E402


def main() -> None:
    """Read a request, run its command, and write the account."""
    with open(0, encoding="utf-8") as stream:
        request = json.load(stream)
    try:
        system.end_with_parent()
        if request["how"] == "namespaces":
            _in_namespaces(request)
        else:
            system.adopt_orphans()
            account = _keep(request, inside=False)
            _tell(account | changes_of(view.intercepted(request["scratch"]), _keeping(request)))
    except OSError as error:
        _tell({"refused": str(error)})


def _in_namespaces(request: dict[str, Any]) -> None:
    partial = namespaces.enter()
    keeper = os.fork()
    if keeper:
        os.waitpid(keeper, 0)
        return
    try:
        system.end_with_parent()
        size = request["limits"]["written_bytes"]
        keep = _keeping(request)  # which is out of sight in the view
        layers = view.build(request["scratch"], request["writable"], size, partial)
        _tell(_keep(request, inside=True) | changes_of(layers, keep))
    except OSError as error:
        _tell({"refused": str(error)})
    os._exit(0)


def _keeping(request: dict[str, Any]) -> int | None:
    """A descriptor of the folder that keeps what the job writes; the job does not inherit it."""
    folder = request["keep"]
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if folder else None


def _tell(account: dict[str, Any]) -> None:
    with open(1, "w", encoding="ascii", closefd=False) as stream:
        json.dump(account, stream)


def _keep(request: dict[str, Any], inside: bool) -> dict[str, Any]:
    """Start the job, wait for it, and end whatever it left."""
    if not request["command"]:
        return {}
    asking, asked = os.pipe()
    answered, answering = os.pipe()
    job = os.fork()
    if job == 0:
        _become(request, asked if inside else None, answered)
    os.close(asked)
    if inside:
        namespaces.let_in(job, asking, answering)
    for name in ("spec", "records", "output"):
        os.close(request[name])
    limits = request["limits"]
    watched = watch.watch(job, limits["seconds"], limits["memory_bytes"], limits["processes"])
    watch.end_all(job, everyone=inside)
    return watched._asdict()


def _become(request: dict[str, Any], asked: int | None, answered: int) -> NoReturn:
    """Turn this process into the job."""
    output = request["output"]
    try:
        os.setsid()
        if asked is not None:
            namespaces.step_in(asked, answered)
        system.give_up_privileges()
        if request["how"] == "landlock":
            landlock.confine(request["scratch"])
        _arrange_descriptors(request)
        output = 2
        _limit(request["limits"], alone=asked is not None)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(request["folder"])
        os.execvpe(request["command"][0], request["command"], request["environment"])
    except OSError as error:
        os.write(output, f"the job could not be started: {error}\n".encode())
    os._exit(127)


def _limit(limits: dict[str, Any], alone: bool) -> None:
    """Limits that the kernel enforces; none can be raised again.

    Args:
        alone: the job's user namespace is its own, so that only its own threads count.
    """
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        # Not RLIMIT_AS: torch maps far more addresses than it uses. This counts writable private
        # memory, so that an absurd allocation is refused at its line, before it is used.
        resource.RLIMIT_DATA: 2 * limits["memory_bytes"],
    }
    if alone:
        bounds[resource.RLIMIT_NPROC] = _THREADS_EACH * limits["processes"]
    for which, bound in bounds.items():
        _, hard = resource.getrlimit(which)
        least = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(which, (least, least))


def _arrange_descriptors(request: dict[str, Any]) -> None:
    """Nothing to read, one output, the specification and the records; all else is closed."""
    # Out of the way first: a number may be one of those to be given.
    spec, records, output = (os.dup(request[name]) for name in ("spec", "records", "output"))
    moved = [os.open("/dev/null", os.O_RDONLY), output, output, spec, records]
    high = [os.dup(number) for number in moved]
    while min(high) < _FIRST_FREE:
        high = [os.dup(number) for number in high]
    for number, source in enumerate(high):
        os.dup2(source, number, inheritable=True)
    os.closerange(_FIRST_FREE, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    main()
