"""Whether files that an attempt missed exist now: a mount that is available again, a file that was written late.

The line of the first cause names a path, a port, a disk or a host; ``there_now.toml`` holds how. It is
looked at where this process runs, once, right after the attempt: no more than a name look-up uses the
network. Where the line came from another node or out of a container, or is about no such thing,
nothing is reported.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path, PurePath

from epochzero.diagnose import Diagnosis
from epochzero.launchers import names_where
from epochzero.run.records.model import Sample, Start

_LOOK_UP_S = 2.0
_MUCH_ROOM = 1 << 30
"""Bytes that are free on a disk that is not about to be full again."""
_LINES_BEFORE = 6
_ASKS_FIRST = re.compile(r"\b(?:exists|isdir|is_dir|isfile|is_file)\(")


@dataclass(frozen=True, slots=True)
class _Miss:
    """One way in which a line names what was missed; see the head of ``there_now.toml``."""

    category: tuple[str, ...]
    look: str
    pattern: re.Pattern[str]
    says: str


@dataclass(frozen=True, slots=True)
class _AttemptFacts:
    """What a look needs to know of the attempt."""

    started: Start
    samples: Sequence[Sample]
    diagnosis: Diagnosis


def there_now(diagnosis: Diagnosis, started: Start, samples: Sequence[Sample] = ()) -> str:
    """A sentence about what the attempt missed and exists now; empty if nothing is known."""
    if diagnosis.root is None or not is_here(diagnosis.root.host, started):
        return ""
    for miss in _misses():
        if diagnosis.category in miss.category and (
            found := miss.pattern.search(diagnosis.root.text.strip())
        ):
            named = found["named"] or ""
            # What a line names need be no path and no port at all.
            with suppress(OSError, ValueError, OverflowError):
                if _LOOKS[miss.look](named, _AttemptFacts(started, samples, diagnosis)):
                    return miss.says.format(named=named)
            return ""
    return ""


@cache
def _misses() -> tuple[_Miss, ...]:
    text = files("epochzero.run.retry").joinpath("there_now.toml").read_text("utf-8")
    return tuple(
        _Miss(tuple(miss["category"]), miss["look"], re.compile(miss["pattern"]), miss["says"])
        for miss in tomllib.loads(text)["misses"]
    )


def is_here(host: str | None, started: Start) -> bool:
    """Whether the job saw the files and the network that are seen here."""
    elsewhere = names_where("files") | {"ssh"}
    if any(PurePath(word).name in elsewhere for word in started.command):
        return False
    return host is None or host.partition(".")[0] == started.host.partition(".")[0]


def _readable(named: str, attempt: _AttemptFacts) -> bool:
    path = _path(named, attempt)
    return path is not None and _may(path, os.R_OK)


def _usable(named: str, attempt: _AttemptFacts) -> bool:
    """The line does not tell what was refused; a path that is not there is made in its folder."""
    path = _path(named, attempt)
    if path is None:
        return False
    return _may(path, os.R_OK | os.W_OK) if path.exists() else _may(path.parent, os.W_OK)


def _may(path: Path, rights: int) -> bool:
    return os.access(path, rights, effective_ids=True)


def _path(named: str, attempt: _AttemptFacts) -> Path | None:
    """The path that was named.

    A relative one is the job's only if the job had not gone to another folder: it counts when it was
    written after the attempt began, so that it was not there in vain.
    """
    path = Path(attempt.started.folder, named)
    if PurePath(named).is_absolute():
        return path
    return path if path.stat().st_ctime > attempt.started.time else None


def _made(named: str, attempt: _AttemptFacts) -> bool:
    """Another process made it during the attempt, after this one had seen that it did not exist."""
    frame = attempt.diagnosis.user_frame
    path = Path(attempt.started.folder, named)
    if frame is None or frame.line is None or path.stat().st_ctime <= attempt.started.time:
        return False
    with Path(attempt.started.folder, frame.file).open(encoding="utf-8", errors="replace") as file:
        before = list(islice(file, frame.line))[-_LINES_BEFORE:]
    return any(_ASKS_FIRST.search(line) for line in before)


def _free(named: str, _: _AttemptFacts) -> bool:
    with socket.socket() as listener:
        listener.bind(("", int(named)))
    return True


def _has_room(named: str, attempt: _AttemptFacts) -> bool:
    """Others had filled the disk: a job that fills it alone has no room for twice what it wrote.

    A disk that was full for seconds only is in no sample.
    """
    folder = attempt.started.folder
    place = Path(folder, named)
    room = os.statvfs(place if place.exists() else place.parent)
    free = room.f_bavail * room.f_frsize
    written = max((sample.written_bytes for sample in attempt.samples), default=0)
    inodes = room.f_favail > 0 or room.f_files == 0
    return inodes and free > max(2 * written, _MUCH_ROOM)


def _resolves(named: str, _: _AttemptFacts) -> bool:
    """A look-up cannot be ended from outside: one that takes longer is left behind."""
    found: list[object] = []

    def look_up() -> None:
        with suppress(OSError, UnicodeError):
            found.extend(socket.getaddrinfo(named, None))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_LOOK_UP_S)
    return bool(found)


_LOOKS: Mapping[str, Callable[[str, _AttemptFacts], bool]] = {
    "readable": _readable,
    "usable": _usable,
    "free": _free,
    "room": _has_room,
    "made": _made,
    "resolves": _resolves,
}
