"""The logs of an attempt: bounded, with the head and the tail kept and the middle dropped.

All that the job writes is in ``output``, in the order in which it came. Where lines begin with the
rank that wrote them, as under ``torchrun --tee``, each rank also has a log of its own, so that no
rank's noise pushes out another's last words.
"""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Output

_PARTS = 4
"""The tail is stored in this many parts; the oldest one is dropped for a new one."""
_MOST_RANKS = 64
"""More ranks than a node has GPUs or cores for are no ranks."""
# How torchelastic marks lines; its role is called default.
_RANK = re.compile(rb"\[(?:default|rank)(\d{1,5})\]:")
_LONGEST_PREFIX = 20
_PART = re.compile(r"(output|rank\d+)(?:\.(\d+))?\.log")


class Logs:
    """The logs of one attempt. Threads may write at once. A full disk loses output, never the job."""

    def __init__(self, folder: Path, keep: int, *, terminal: str = "") -> None:
        r"""Makes the logs.

        Args:
            folder: where they lie.
            keep: bytes of the head of each, and again of its tail.
            terminal: the stream that comes through one, which has made ``\r\n`` of each ``\n``.
        """
        self._folder = folder
        self._keep = keep
        self._terminal = terminal
        self._lock = threading.Lock()
        self._output = _Log(folder, "output", keep)
        self._ranks: dict[int, _Log] = {}
        self._streams: defaultdict[str, _Lines] = defaultdict(_Lines)

    def write(self, stream: str, data: bytes) -> None:
        """Keeps what came from a stream."""
        with self._lock:
            lines = self._streams[stream]
            if stream == self._terminal:
                data = lines.undone(data)
            self._output.write(data)
            self._write_ranks(lines.of_ranks(data))

    def close(self, clock: Clock) -> tuple[Output, ...]:
        """Ends the logs and says what they hold; nothing is kept of what is written afterwards."""
        with self._lock:
            for lines in self._streams.values():
                self._output.write(lines.held)
                self._write_ranks(lines.rest())
            logs = (self._output, *(log for _, log in sorted(self._ranks.items())))
            return tuple(log.close(clock) for log in logs)

    def _write_ranks(self, written: list[tuple[int, bytes]]) -> None:
        for rank, text in written:
            if rank not in self._ranks and len(self._ranks) < _MOST_RANKS:
                self._ranks[rank] = _Log(self._folder, f"rank{rank}", self._keep)
            if rank in self._ranks:
                self._ranks[rank].write(text)


def logs_in(folder: Path) -> Mapping[str, Sequence[Path]]:
    """The logs that lie in an attempt's folder, each with its parts in the order of their time.

    While the attempt runs, and when its supervisor was killed, no record says which there are.
    """
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in sorted(folder.glob("*.log")):
        if part := _PART.fullmatch(path.name):
            found.setdefault(part[1], []).append((int(part[2] or 0), path))
    return {name: [path for _, path in sorted(parts)] for name, parts in found.items()}


class _Lines:
    """The lines of a stream that comes in pieces of any size.

    Attributes:
        held: a carriage return at the end, after which a line feed may come.
    """

    def __init__(self) -> None:
        self.held = b""
        self._begun = b""
        self._at_start = True
        self._rank: int | None = None

    def undone(self, data: bytes) -> bytes:
        r"""``data`` as it was before each ``\n`` became ``\r\n``."""
        data = self.held + data
        self.held = b"\r" if data.endswith(b"\r") else b""
        return data.removesuffix(self.held).replace(b"\r\n", b"\n")

    def of_ranks(self, data: bytes) -> list[tuple[int, bytes]]:
        """What ranks wrote, line by line; a line that is not whole yet in pieces."""
        data = self._begun + data
        self._begun = b""
        if self._rank is None and b"[default" not in data and b"[rank" not in data:
            # Nearly all output is such; only its last line may still turn out to be a rank's.
            _, line_end, data = data.rpartition(b"\n")
            self._at_start |= bool(line_end)
        found: list[tuple[int, bytes]] = []
        for line in _with_ends(data):
            whole = line.endswith(b"\n")
            if self._at_start:
                if not whole and len(line) < _LONGEST_PREFIX:
                    self._begun = line
                    break
                prefix = _RANK.match(line)
                self._rank = int(prefix[1]) if prefix else None
            if self._rank is not None:
                found.append((self._rank, line))
            self._at_start = whole
            if whole:
                self._rank = None
        return found

    def rest(self) -> list[tuple[int, bytes]]:
        """What a rank wrote without ending its line."""
        prefix = _RANK.match(self._begun)
        return [(int(prefix[1]), self._begun)] if prefix else []


def _with_ends(data: bytes) -> list[bytes]:
    """Lines with their line feeds; a carriage return ends none."""
    *lines, rest = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


class _Log:
    """One log: a head, and the last parts of what came after it."""

    def __init__(self, folder: Path, name: str, keep: int) -> None:
        self._folder = folder
        self._name = name
        self._keep = keep
        self._paths: deque[str] = deque()
        self._sizes: deque[int] = deque()
        self._begun = 0
        self._size = self._dropped = 0
        self._left = 0
        self._file: int | None = None
        self._next_part(keep)

    def write(self, data: bytes) -> None:
        self._size += len(data)
        rest = memoryview(data)
        while rest:
            if self._left <= 0:
                self._next_part(max(1, self._keep // _PARTS))
            written = self._put(rest[: self._left])
            if not written:
                self._dropped += len(rest)
                return
            rest = rest[written:]

    def close(self, clock: Clock) -> Output:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        return Output(*clock.now(), self._name, tuple(self._paths), self._size, self._dropped)

    def _put(self, data: memoryview) -> int:
        """How much was written; 0 when the disk is full or the log is closed."""
        if self._file is None:
            return 0
        with suppress(OSError):
            written = os.write(self._file, data)
            self._left -= written
            self._sizes[-1] += written
            return written
        return 0

    def _next_part(self, size: int) -> None:
        """Begins another part; the head is the first and is never dropped."""
        name = f"{self._name}.log" if not self._begun else f"{self._name}.{self._begun}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        if self._file is not None:
            os.close(self._file)
            self._file = None
        try:
            self._file = os.open(self._folder / name, flags, 0o600)
        except OSError:
            return
        self._begun += 1
        self._left = size
        self._paths.append(name)
        self._sizes.append(0)
        if len(self._paths) > _PARTS + 2:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        with suppress(OSError):
            os.unlink(self._folder / self._paths[1])
        self._dropped += self._sizes[1]
        del self._paths[1]
        del self._sizes[1]
