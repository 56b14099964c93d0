"""Run a job's command in a containment and within limits, and report how it ended.

Whatever the job does, this process survives: it only reads bounded amounts from three pipes. The
launcher (`contain/inside`) sets the limits, monitors the job, and kills what is left. A second timer
here covers the case that the launcher itself is stopped.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from epochzero.check.dryrun.child.guard import SCRATCH_VARIABLE
from epochzero.check.dryrun.contain import best_containment
from epochzero.check.dryrun.contain.environment import contained_environment
from epochzero.check.dryrun.contain.model import Containment, Exit, FileChange, Limits, Means
from epochzero.check.dryrun.launchers import SimulatedLauncher, start_launcher
from epochzero.scratch import scratch_directory

SPEC_DESCRIPTOR = 3
RECORDS_DESCRIPTOR = 4

_running: set[SimulatedLauncher] = set()
_CHUNK = 1 << 16
_GRACE_S = 5.0
_MOST_ACCOUNT_BYTES = 1 << 24


def run_contained(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    spec: bytes,
    containment: Containment | None = None,
    keep: Path | None = None,
    on_record: Callable[[bytes], object] = lambda _: None,
) -> Exit:
    """Run a command without lasting side effects.

    The job finds the specification on descriptor `SPEC_DESCRIPTOR` and writes records, one per line,
    to `RECORDS_DESCRIPTOR`. Its standard input is empty. Secrets are removed from its environment.

    Args:
        command: program and arguments.
        folder: working directory.
        environment: variables before secrets are removed.
        limits: resource limits.
        spec: specification for the job.
        containment: isolation; by default the best that this system supports.
        keep: empty directory for copies of the files that the job writes; None to discard them.
        on_record: called with each record as it arrives.
    """
    how = containment or best_containment()
    start = time.monotonic()
    with scratch_directory() as scratch:
        request = _request(command, folder, environment, limits, how, scratch, keep)
        account, received = _run(request, spec, limits, on_record)
    return _ended(account, received, limits, how, keep, time.monotonic() - start)


def _request(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    containment: Containment,
    scratch: str,
    keep: Path | None,
) -> dict[str, Any]:
    variables, _ = contained_environment(environment)
    if containment.means is not Means.NAMESPACES:
        variables[SCRATCH_VARIABLE] = scratch
    return {
        "command": list(command),
        "folder": str(folder),
        "environment": variables,
        "scratch": scratch,
        "writable": _likely_written(command, folder, variables),
        "keep": str(keep or ""),
        "how": containment.means.value,
        "limits": asdict(limits),
    }


def _likely_written(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> list[str]:
    """The job directory, the usual ones, and the nearest existing parent of each given path."""
    words = [word.rpartition("=")[2] for word in command] + list(environment.values())
    named = [Path(word) for word in words if word.startswith("/") and "\0" not in word]
    found = {os.path.realpath(path) for path in (folder, Path("/tmp"), Path("/var/tmp"))}
    for path in named:
        nearest = next((p for p in (path, *path.parents) if os.path.isdir(p)), Path("/"))
        found.add(os.path.realpath(nearest))
    return sorted(found - {"/"})


class _Received:
    """The output of the job's pipes, up to a limit."""

    def __init__(self, limits: Limits, on_record: Callable[[bytes], object]) -> None:
        self.limits = limits
        self.on_record = on_record
        self.head = bytearray()
        self.tail = bytearray()
        self.output_bytes = 0
        self.records: list[bytes] = []
        self.record_bytes = 0
        self.dropped = 0
        self.account = bytearray()
        self._line = bytearray()
        self._too_long = False

    def output(self, data: bytes) -> None:
        self.output_bytes += len(data)
        half = self.limits.output_bytes // 2
        room = half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        del self.tail[:-half]

    def record(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._extend(piece)
            self._end_line()
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > self.limits.record_bytes:
            self._too_long = True
            self._line.clear()
        elif not self._too_long:
            self._line += piece

    def _end_line(self) -> None:
        self.record_bytes += len(self._line)
        full = (
            len(self.records) >= self.limits.records
            or self.record_bytes > self.limits.all_record_bytes
        )
        if self._too_long or full:
            self.dropped += 1
        elif self._line:
            self.records.append(bytes(self._line))
            self.on_record(self.records[-1])
        self._line.clear()
        self._too_long = False

    def report(self, data: bytes) -> None:
        if len(self.account) < _MOST_ACCOUNT_BYTES:
            self.account += data

    def text(self) -> str:
        left_out = self.output_bytes - len(self.head) - len(self.tail)
        between = f"\n... {left_out:,} bytes left out ...\n".encode() if left_out else b""
        return (self.head + between + self.tail).decode("utf-8", "replace")


def _run(
    request: dict[str, Any], spec: bytes, limits: Limits, on_record: Callable[[bytes], object]
) -> tuple[dict[str, Any], _Received]:
    """Start the launcher and read its output until it exits. Its report, empty if it wrote none."""
    received = _Received(limits, on_record)
    with ExitStack() as stack:
        spec_file = stack.enter_context(tempfile.TemporaryFile())
        spec_file.write(spec)
        spec_file.seek(0)
        records, records_in = _pipe(stack)
        output, output_in = _pipe(stack)
        given = {"spec": spec_file, "records": records_in, "output": output_in}
        numbers = {name: stream.fileno() for name, stream in given.items()}
        process = start_launcher(
            request["command"],
            request["environment"],
            list(numbers.values()),
            Means(request["how"]),
        )
        _running.add(process)
        stack.callback(_put_to_rest, process)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(request | numbers).encode())
        for stream in given.values():
            stream.close()
        takers = {
            process.stdout: received.report,
            records: received.record,
            output: received.output,
        }
        _listen(process.stdout, takers, time.monotonic() + limits.seconds + _GRACE_S)
    try:
        account = json.loads(received.account)
    except ValueError:
        account = {}
    return account, received


def _kill(process: SimulatedLauncher) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return (
        stack.enter_context(open(reading, "rb", buffering=0)),
        stack.enter_context(open(writing, "wb", buffering=0)),
    )


def _listen(account: IO[bytes], takers: Mapping[IO[bytes], Any], deadline: float) -> None:
    """Read the output until the launcher has exited, and then what is left in the pipes."""
    with selectors.DefaultSelector() as selector:
        for stream, take in takers.items():
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, take)
        open_account = True
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            events = selector.select(left if open_account else 0)
            if not events and not open_account:
                return
            for key, _ in events:
                data = os.read(key.fd, _CHUNK)
                if data:
                    key.data(data)
                else:
                    selector.unregister(key.fileobj)
                    open_account = open_account and key.fileobj is not account


def end_all() -> None:
    """Terminate all runs of this process, whichever thread waits for them."""
    for process in list(_running):
        _kill(process)


def _put_to_rest(process: SimulatedLauncher) -> None:
    """Kill the launcher if it is running; the kernel then kills all processes that it contains."""
    if process.poll() is None:
        _kill(process)
    process.wait()
    _running.discard(process)
    if process.stdout is not None:
        process.stdout.close()


# -- What became of it -------------------------------------------------------------------------


def _ended(
    account: Mapping[str, Any],
    received: _Received,
    limits: Limits,
    how: Containment,
    keep: Path | None,
    seconds: float,
) -> Exit:
    status = account.get("status")
    limit = str(account.get("limit", ""))
    code, name = _decoded(status)
    changes = [
        FileChange(
            Path(c["path"]),
            c["how"],
            c["bytes"],
            keep / str(n) if keep and c["kept"] else None,
            c["directory"],
        )
        for n, c in enumerate(account.get("changes", []))
    ]
    return Exit(
        why=_why(account, code, name, limits),
        code=code,
        signal=name,
        limit=limit,
        seconds=seconds,
        memory_bytes=int(account.get("memory_bytes", 0)),
        output=received.text(),
        output_bytes=received.output_bytes,
        records=tuple(received.records),
        records_dropped=received.dropped,
        changes=tuple(changes),
        changes_left_out=int(account.get("left_out", 0)),
        containment=how,
    )


def _decoded(status: int | None) -> tuple[int | None, str]:
    """A wait status as exit status and name of a signal."""
    if status is None:
        return None, ""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code, ""
    try:
        return None, signal.Signals(-code).name
    except ValueError:
        return None, f"signal {-code}"


def _why(account: Mapping[str, Any], code: int | None, name: str, limits: Limits) -> str:
    if not account:
        return "The process that monitored the job was killed from outside; the job was killed with it."
    if "refused" in account:
        return f"The job was not started: {account['refused']}."
    if account["limit"]:
        return {
            "time": f"It was killed at the time limit of {limits.seconds:g} s; --dry-time increases it.",
            "memory": f"It was killed because it used more than {limits.memory_bytes / 1e9:.1f} GB of "
            "memory.",
            "processes": f"It was killed because it started more than {limits.processes} processes.",
        }[account["limit"]]
    if name:
        return f"It was killed by {name}{_MEANINGS.get(name, '')}."
    return f"It exited with exit status {code}."


_MEANINGS = {
    "SIGSEGV": ": compiled code accessed invalid memory",
    "SIGBUS": ": a memory-mapped file is too short, or shared memory is full",
    "SIGABRT": ": compiled code aborted",
    "SIGFPE": ": compiled code divided by zero",
    "SIGILL": ": compiled code uses instructions that this CPU does not support",
    "SIGXFSZ": ": a file exceeded the size limit",
    "SIGKILL": ", by itself or by the system",
}
