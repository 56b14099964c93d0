"""Where logs come from: files, folders of rank files, compressed files, standard input.

A `Log` is one stream of bytes with what its place tells of it (its rank, its host). Launchers lay
rank files out in their own ways; `rank_of` knows them. Blocks end at line ends, so that nothing
downstream has to join halves of a line.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from epochzero.errors import InputError

__all__ = ["STDIN", "Block", "Log", "find_logs", "rank_of"]

STDIN = Path("-")
BLOCK_BYTES = 1 << 20
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
        rank: the rank that its name or folder tells.
        modified: when the file was last written, in seconds since the epoch.
    """

    name: str
    path: Path | None = None
    text: bytes = field(default=b"", repr=False)
    rank: int | None = None
    modified: float | None = None

    def blocks(self) -> Iterator[Block]:
        """The log in blocks of about a mebibyte.

        A compressed file that ends too early yields what it holds.

        Raises:
            InputError: the log cannot be read.
        """
        if self.path is None:
            yield from _blocks(io.BytesIO(self.text))
            return
        try:
            with _open(self.path) as stream:
                yield from _blocks(stream)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            yield _Lenient(gzip.GzipFile(fileobj=raw))
        elif magic == b"\x28\xb5\x2f\xfd":
            yield _Lenient(
                zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            )
        else:
            yield raw


class _Lenient(io.RawIOBase, BinaryIO):  # type: ignore[misc]  # both define the same protocol
    """A decompressing stream whose damaged or missing end is an end, not an error.

    A log that was still being compressed when its node died holds the most interesting lines.
    """

    def __init__(self, stream: object) -> None:
        self._stream = cast(IO[bytes], stream)

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
            return b""


def _blocks(stream: BinaryIO) -> Iterator[Block]:
    offset = 0
    carry = b""
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
        elif path.is_dir():
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


_LOG_NAME = re.compile(
    r"(?:\.(?:log|out|err|txt|stdout|stderr)(?:\.\d+)?|^(?:stdout|stderr|log|output)"
    r"|^slurm-[\w.-]+|\.[oe]\d+|^error\.json)(?:\.(?:gz|zst))?$",
    re.IGNORECASE,
)
_RANK_NAME = re.compile(r"^(?:rank|worker|node|gpu|proc|process|task)[-_.]?\d+(?:\.(?:gz|zst))?$")


def _folder_logs(folder: Path) -> list[Log]:
    found = []
    for path in sorted(folder.rglob("*")):
        named_as_log = _LOG_NAME.search(path.name) or _RANK_NAME.search(path.name)
        if named_as_log and path.is_file():
            found.append(_file_log(path, path.relative_to(folder).as_posix()))
    return _last_attempts(found)


_ATTEMPT = re.compile(r"^(?P<run>.*?)(?:^|/)attempt_(?P<attempt>\d+)/")


def _last_attempts(logs: list[Log]) -> list[Log]:
    """Of a job that its launcher started again, the last attempt only: it decided the outcome."""
    last: dict[str, int] = {}
    for log in logs:
        if found := _ATTEMPT.match(log.name):
            last[found["run"]] = max(last.get(found["run"], 0), int(found["attempt"]))
    return [
        log
        for log in logs
        if not (found := _ATTEMPT.match(log.name)) or int(found["attempt"]) == last[found["run"]]
    ]


def _file_log(path: Path, name: str) -> Log:
    try:
        modified = path.stat().st_mtime
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from error
    return Log(name=name, path=path, rank=rank_of(name), modified=modified)


_RANKS = (
    re.compile(r"(?:^|[/_.\-])(?:global[-_]?)?rank[-_.=]?(\d+)(?![\d.]*\d)", re.IGNORECASE),
    re.compile(r"(?:^|/)attempt_\d+/(\d+)/"),
    re.compile(r"(?:^|/)(\d+)/(?:stdout|stderr|error)(?:\.\w+)?(?:\.\w+)?$"),
    re.compile(r"(?:^|[/_.\-])(?:worker|proc|process|task|trainer|gpu)[-_.=]?(\d+)(?=\D|$)",
               re.IGNORECASE),
    re.compile(r"(?:^|/)slurm-\d+[._-](\d+)\.\w+$"),
    re.compile(r"(?:^|/)[^/]*?[._-](\d{1,3})\.(?:log|out|err|stdout|stderr)(?:\.\w+)?$"),
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
