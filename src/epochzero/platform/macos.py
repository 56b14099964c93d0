"""macOS: processes by ``ps``, memory by ``vm_stat``.

No process adopts the orphans of a job, as one does on Linux: an orphan is found by the session that it belongs to, which
the job's guard leads. One that starts a session of its own, and whose parent exits, is lost.
"""

from __future__ import annotations

import calendar
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

from epochzero.platform.model import ProcessStatus

NAME = "macOS"
ADOPTS_ORPHANS = False
_COLUMNS = [f"-o{column}=" for column in ("pid", "ppid", "stat", "lstart", "time", "rss")]
# lstart has five words, as "Sat Nov 28 05:09:46 2026" in the C locale.
_ROW = re.compile(r"(\d+)\s+(\d+)\s+(\S+)\s+\w+ (\w+ +\d+ [\d:]+ \d+)\s+([\d:.-]+)\s+(\d+)")
_STARTED = "%b %d %H:%M:%S %Y"
_LAUNCHD = 1


def usable_cpus() -> int:
    """How many processors the machine has; macOS restricts no process to some of them."""
    return os.cpu_count() or 1


def memory_available() -> int | None:
    """Bytes of the machine's memory that programs can still get; None where ``vm_stat`` fails."""
    text = _output(["/usr/bin/vm_stat"])
    page = re.search(r"page size of (\d+) bytes", text)
    free = re.findall(r"^Pages (?:free|inactive|speculative):\s+(\d+)", text, re.MULTILINE)
    return int(page[1]) * sum(map(int, free)) if page and free else None


def adopt_orphans(adopt: bool = True) -> None:
    """Does nothing: macOS gives orphans to its first process."""


def processes() -> Iterator[ProcessStatus]:
    """Each process that exists now, without the ``ps`` that lists them."""
    ps, text = _run(["/bin/ps", "-A", *_COLUMNS])
    for line in text.splitlines():
        row = _ROW.fullmatch(line.strip())
        if row and int(row[1]) != ps:
            yield _process(row)


def process_status(pid: int) -> ProcessStatus | None:
    """One process; None when it is gone."""
    row = _ROW.fullmatch(_output(["/bin/ps", *_COLUMNS, "-p", str(pid)]).strip())
    return _process(row) if row else None


def name_of(pid: int) -> str:
    """The name of a process, such as ``python``; its number where it is gone."""
    path = _output(["/bin/ps", "-o", "comm=", "-p", str(pid)]).strip()
    return os.path.basename(path) or str(pid)


def _process(row: re.Match[str]) -> ProcessStatus:
    pid, parent = int(row[1]), int(row[2])
    if parent == _LAUNCHD:
        with suppress(OSError):
            parent = os.getsid(pid)
    return ProcessStatus(
        pid=pid,
        parent=parent,
        started=calendar.timegm(time.strptime(row[4], _STARTED)),
        # One that waits for a device or is idle sleeps, as on Linux.
        state=row[3][0] if row[3][0] in "RTZ" else "S",
        status=0,
        cpu_seconds=_seconds(row[5]),
        memory_bytes=int(row[6]) << 10,
        read_bytes=0,
        written_bytes=0,
    )


def _seconds(text: str) -> float:
    """Of ``[days-][hours:]minutes:seconds``."""
    days, _, rest = text.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds + 86400 * int(days or 0)


def _output(command: list[str]) -> str:
    """What a program prints; nothing where it is missing or fails."""
    return _run(command)[1]


def _run(command: list[str]) -> tuple[int, str]:
    """The process ID that a program had and what it printed; 0 and nothing where it is missing."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C"},
        )
    except OSError:
        return 0, ""
    with process:
        text, _ = process.communicate()
    return process.pid, text.decode("utf-8", "replace")
