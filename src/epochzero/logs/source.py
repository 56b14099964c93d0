"""Where logs come from: files, folders of rank files, compressed files, standard input.

A `Log` is one stream of bytes with what its place tells of it (its rank, its host). Launchers lay
rank files out in their own ways; `rank_of` knows them. Blocks end at line ends, so that nothing
downstream has to join halves of a line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from epochzero.errors import InputError

__all__ = [
    "ERROR_FILE",
    "STDIN",
    "Block",
    "Log",
    "blocks_from",
    "blocks_of",
    "find_logs",
    "is_log_name",
    "is_packed",
    "last_attempts",
    "looks_binary",
    "rank_of",
]

STDIN = Path("-")
ERROR_FILE = "error.json"
"""What torchelastic calls the file in which a rank records the exception that ended it."""
BLOCK_BYTES = 1 << 20
PIECE_BYTES = 1 << 14
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
LONGEST_LINE_BYTES = 4 << 20
"""A longer line is cut, so that one line of any size needs bounded memory."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of a log (or a piece of an overlong one).

    Attributes:
        offset: where the block begins, in bytes of the uncompressed log.
        data: the bytes.
    """

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Log:
    """One stream of log bytes.

    Attributes:
        name: what the user sees: the path as given, or relative to the folder given.
        path: the file; None for text held in memory.
        text: the bytes of a log held in memory.
        file: a log that is open; its bytes are taken as they are, also where they look compressed.
        rank: the rank that its name or folder tells.
        time: when its process failed, in seconds since the epoch, if the launcher recorded that.
        restarts: how often the launcher had started the job again before this log began.
    """

    name: str
    path: Path | None = None
    text: bytes = field(default=b"", repr=False)
    file: IO[bytes] | None = field(default=None, repr=False)
    rank: int | None = None
    time: float | None = None
    restarts: int = 0

    @property
    def size(self) -> int:
        """Bytes as they are stored; 0 where that cannot be known without reading."""
        if self.file is not None:
            return self.file.seek(0, io.SEEK_END)
        if self.path is None:
            return len(self.text)
        try:
            return 0 if self.path == STDIN else self.path.stat().st_size
        except OSError:
            return 0

    def blocks(self) -> Iterator[Block]:
        """The log in blocks of about a mebibyte.

        A compressed file that ends too early yields what it holds.

        Raises:
            InputError: the log cannot be read.
        """
        if self.file is not None:
            self.file.seek(0)
            yield from blocks_of(self.file)
            return
        if self.path is None:
            yield from blocks_of(io.BytesIO(self.text))
            return
        try:
            with _open(self.path) as stream:
                yield from blocks_of(stream)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield _plain(sys.stdin.buffer)
        return
    with path.open("rb") as raw:
        yield _plain(raw)


def is_packed(head: bytes) -> bool:
    """Whether a file that begins so is compressed."""
    return head.startswith((GZIP, ZSTD))


def _plain(raw: BinaryIO) -> BinaryIO:
    """The stream without its compression; pipes cannot be rewound, so it is only peeked at."""
    magic = raw.peek(4) if isinstance(raw, io.BufferedReader) else b""
    if magic.startswith(GZIP):
        return _Lenient(gzip.GzipFile(fileobj=raw))
    if magic.startswith(ZSTD):
        return _Lenient(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
    return raw


class _Lenient(io.RawIOBase, BinaryIO):
    """A decompressing stream whose damaged or missing end is an end, not an error.

    A log that was still being compressed when its node died holds the most interesting lines.
    """

    def __init__(self, stream: object) -> None:
        self._stream = cast("io.BufferedIOBase", stream)
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Reads ``size`` bytes; piece by piece, so that a damage costs no more than a piece."""
        pieces: list[bytes] = []
        wanted = size
        while wanted > 0 and not self._ended:
            try:
                piece = self._stream.read1(min(wanted, PIECE_BYTES))
            except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
                piece = b""
            self._ended = not piece
            pieces.append(piece)
            wanted -= len(piece)
        return b"".join(pieces)


def blocks_of(stream: IO[bytes]) -> Iterator[Block]:
    """The blocks of a stream that is not compressed."""
    return _blocks(stream, 0, b"")


def blocks_from(stream: BinaryIO, start: int) -> Iterator[Block]:
    """The blocks of a file that is not compressed from the first on that begins in or behind a chunk.

    They are those of `blocks_of`: a block ends with the last line that ends in a chunk.

    Args:
        stream: that can be read from any place.
        start: where the chunk begins, a multiple of `BLOCK_BYTES`.
    """
    stream.seek(start)
    if not start:
        yield from blocks_of(stream)
        return
    offset = start
    while chunk := stream.read(BLOCK_BYTES):
        offset += len(chunk)
        if cut := chunk.rfind(b"\n") + 1:
            yield from _blocks(stream, offset - len(chunk) + cut, chunk[cut:])
            return


def _blocks(stream: IO[bytes], offset: int, carry: bytes) -> Iterator[Block]:
    while chunk := stream.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n") + 1
        if cut == 0 and len(carry) < LONGEST_LINE_BYTES:
            carry += chunk
            continue
        data = carry + chunk[:cut] if cut else carry + chunk
        carry = chunk[cut:] if cut else b""
        yield Block(offset, data)
        offset += len(data)
    if carry:
        yield Block(offset, carry)


_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b") | {127})
MOST_CONTROL = 0.1
FEWEST_CONTROL = 16


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are no text: too many control characters.

    NUL bytes at the start alone are a hole that a lost node left in a file, and count for nothing.
    """
    text = head.lstrip(b"\0")
    control = len(text) - len(text.translate(None, _CONTROL))
    return control > max(FEWEST_CONTROL, MOST_CONTROL * len(text))


def find_logs(paths: Iterable[Path]) -> tuple[Log, ...]:
    """The logs that the paths name: each file itself, each folder's log files.

    Args:
        paths: files, folders, or `STDIN`.

    Raises:
        InputError: a path does not exist, cannot be read, or is a folder without logs.
    """
    logs: list[Log] = []
    for path in paths:
        if path == STDIN:
            logs.append(Log(name="<stdin>", path=path))
        elif _is_folder(path):
            found = _folder_logs(path)
            if not found:
                raise InputError(
                    f"{path}: no log files in this folder; expected names such as *.log, *.out, "
                    f"*.err, *.txt, stdout, stderr, or these with .gz or .zst"
                )
            logs.extend(found)
        elif path.exists():
            logs.append(_file_log(path, path.as_posix()))
        else:
            raise InputError(f"{path}: no such file or folder")
    return tuple(logs)


def _is_folder(path: Path) -> bool:
    """Whether the path is a folder, and one that can be read."""
    try:
        if path.is_dir():
            os.scandir(path).close()
            return True
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from error
    return False


_LOG_NAME = re.compile(
    r"(?:\.(?:log|out|err|txt|stdout|stderr)(?:\.\d+)?|^(?:stdout|stderr|log|output)"
    r"|^slurm-[\w.-]+|\.[oe]\d+|^error\.json)(?:\.(?:gz|zst))?$",
    re.IGNORECASE,
)
_NO_LOG_NAME = re.compile(
    r"^(?:(?:sacct|kubectl|describe|requirements).*|environment)\.txt$", re.IGNORECASE
)
_RANK_NAME = re.compile(r"^(?:rank|worker|node|gpu|proc|process|task)[-_.]?\d+(?:\.(?:gz|zst))?$")


def _folder_logs(folder: Path) -> list[Log]:
    found = []
    for path in sorted(folder.rglob("*")):
        if is_log_name(path.name) and path.is_file():
            found.append(_file_log(path, path.relative_to(folder).as_posix()))
    return last_attempts(found)


def is_log_name(name: str) -> bool:
    """Whether a file of this name, without folders, is taken for a log.

    >>> is_log_name("slurm-4242.out"), is_log_name("model.pt")
    (True, False)
    """
    named_as_log = _LOG_NAME.search(name) or _RANK_NAME.search(name)
    return bool(named_as_log and not _NO_LOG_NAME.search(name))


_ATTEMPT = re.compile(r"^(?P<run>.*?)(?:^|/)attempt_(?P<attempt>\d+)/")


def last_attempts(logs: Sequence[Log]) -> list[Log]:
    """Of a job that its launcher started again, the last attempt only: it decided the outcome."""
    last: dict[str, int] = {}
    for log in logs:
        if found := _ATTEMPT.match(log.name):
            last[found["run"]] = max(last.get(found["run"], 0), int(found["attempt"]))
    kept = []
    for log in logs:
        attempt = int(found["attempt"]) if (found := _ATTEMPT.match(log.name)) else 0
        if found is None or attempt == last[found["run"]]:
            kept.append(replace(log, restarts=attempt))
    return kept


def _file_log(path: Path, name: str) -> Log:
    rank = rank_of(name)
    if path.name == ERROR_FILE and (recorded := _recorded_error(path)):
        text, time = recorded
        return Log(name=name, text=text, rank=rank, time=time)
    return Log(name=name, path=path, rank=rank)


def _recorded_error(path: Path) -> tuple[bytes, float | None] | None:
    """The traceback that torchelastic wrote for a rank, and when; None for any other JSON."""
    try:
        message = json.loads(path.read_bytes())["message"]
        if isinstance(message, str):
            return message.encode(), None
        extra = message["extraInfo"]
        return str(extra["py_callstack"]).encode(), float(extra["timestamp"])
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


_RANKS = (
    re.compile(r"(?:^|[/_.\-])(?:global[-_]?)?rank[-_.=]?(\d+)(?![\d.]*\d)", re.IGNORECASE),
    re.compile(r"(?:^|/)attempt_\d+/(\d+)/"),
    re.compile(r"(?:^|/)(\d+)/(?:stdout|stderr|error)(?:\.\w+)?(?:\.\w+)?$"),
    re.compile(
        r"(?:^|[/_.\-])(?:worker|proc|process|task|trainer|gpu)[-_.=]?(\d+)(?=\D|$)", re.IGNORECASE
    ),
    re.compile(r"(?:^|/)slurm-\d+[._-](\d+)\.\w+$"),
    # ... but the last part of a date or a time is no rank
    re.compile(
        r"(?:^|/)[^/]*?(?<!\d\d[._-]\d\d)[._-](\d{1,3})\.(?:log|out|err|stdout|stderr)(?:\.\w+)?$"
    ),
)


def rank_of(name: str) -> int | None:
    """The rank that a log's name tells, by the layouts of torchrun, Slurm, Horovod and others.

    >>> rank_of("attempt_0/3/stderr.log")
    3
    >>> rank_of("logs/rank_12.log.gz")
    12
    """
    if re.search(r"(?:^|/)slurm-\d+\.\w+$", name):
        return None
    for pattern in _RANKS:
        if found := pattern.search(name):
            return int(found[1])
    return None
