"""Sources of logs: files, directories of rank files, compressed files, standard input.

A `Log` is one stream of bytes with the metadata of its location (rank, host). Launchers use
different layouts of rank files; `rank_of` recognizes them. Blocks end at line ends, so that callers
never have to join partial lines.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Protocol

from epochzero import launchers
from epochzero.errors import InputError
from epochzero.file_access import open_file
from epochzero.logs.flight_recorder import DUMP_NAME, looks_like_dump, report_of
from epochzero.number_formats import counted

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


STDIN = Path("-")
ERROR_FILE = "error.json"
"""Name of torchelastic's file in which a rank records its fatal exception."""
CUT_OFF = "the compressed data are truncated; only the part before the end was read"
DAMAGED = (
    "the compressed data are damaged; the undamaged parts were read, and line numbers after the damage "
    "may be too low"
)
OnDamage = Callable[[str], None]
BLOCK_BYTES = 1 << 20
HEAD_BYTES = 4096
PIECE_BYTES = 1 << 14
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
LONGEST_LINE_BYTES = 4 << 20
"""A longer line is split, so that a line of any size uses limited memory."""


def ignore_damage(_message: str) -> None:
    """For readers that only display a log."""


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines of a log (or a piece of an overlong one).

    Attributes:
        offset: of the block, in bytes of the uncompressed log.
        data: the bytes.
    """

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Log:
    """One stream of log bytes.

    Attributes:
        name: display name: the given path, or relative to the given directory.
        path: the file; None for text in memory.
        text: the bytes of a log in memory.
        file: an open log; its bytes are never decompressed.
        rank: from its name or directory.
        time: time of failure of its process in seconds since the epoch, if the launcher recorded it.
        restarts: number of restarts by the launcher before this log started.
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
        """Stored size in bytes; 0 if it cannot be determined without reading."""
        if self.file is not None:
            return self.file.seek(0, io.SEEK_END)
        if self.path is None:
            return len(self.text)
        try:
            return 0 if self.path == STDIN else self.path.stat().st_size
        except OSError:
            return 0

    def blocks(self, on_damage: OnDamage = ignore_damage) -> Iterator[Block]:
        """The log in blocks of about a mebibyte, decompressed and in UTF-8 (or in the original
        encoding, unless that is UTF-16).

        Args:
            on_damage: called with a message if compressed data are truncated or damaged. The
                blocks then contain the readable data.

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
            with _open(self.path, on_damage) as stream:
                yield from blocks_of(stream)
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


@contextmanager
def _open(path: Path, on_damage: OnDamage) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield _plain(sys.stdin.buffer, on_damage)
        return
    with open_file(path, pipes=True) as raw:
        yield _plain(raw, on_damage)


def is_encoded(head: bytes) -> bool:
    """Whether a file with these first bytes is compressed or in UTF-16, and can only be read from its
    start.
    """
    return head.startswith((GZIP, ZSTD)) or _utf16(head) is not None


def _plain(raw: BinaryIO, on_damage: OnDamage) -> BinaryIO:
    """The decompressed stream in UTF-8. Pipes cannot be rewound, so the stream is
    only peeked at.
    """
    if not isinstance(raw, io.BufferedReader):
        return raw
    stream = raw
    magic = stream.peek(4)
    for packing in _PACKINGS:
        if magic.startswith(packing.magic):
            stream = _stream(_unpacked(raw, packing, on_damage))
    if encoding := _utf16(stream.peek(HEAD_BYTES)[:HEAD_BYTES]):
        stream = _stream(_decoded(stream, encoding))
    return stream


def _utf16(head: bytes) -> str | None:
    """The UTF-16 encoding of a file with these first bytes, if any: indicated by a byte order mark, or by the
    NUL byte in nearly every Latin character (Windows programs may omit the mark).
    """
    head = head[: len(head) // 2 * 2]
    for mark, encoding in _UTF16:
        if head.startswith(mark) and (mark or _is_latin(head, encoding)):
            text = head[len(mark) :].decode(encoding, "replace")
            # Half of a pair of surrogates may stand at the end; a binary file has many halves.
            if "\ufffd" not in text[:-1] and not looks_binary(text.encode()):
                return encoding
    return None


class _Pieces(io.RawIOBase):
    """A stream of the bytes that an iterator yields."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fills the buffer with one piece, or with the part of it that fits."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _stream(pieces: Iterator[bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Pieces(pieces), PIECE_BYTES)


def _decoded(stream: BinaryIO, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(stream.read(PIECE_BYTES)).removeprefix("\ufeff").encode()
    while data := stream.read(PIECE_BYTES):
        yield decoder.decode(data).encode()
    yield decoder.decode(b"", final=True).encode()


class _ArchiveMember(Protocol):
    """A decompressor of one gzip member or one Zstandard frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Packing:
    """A compression format.

    Attributes:
        magic: first bytes of a file.
        begin: first bytes of a member.
        open: creates a decompressor for the next member.
        error: exceptions of a decompressor for damaged data.
        step: number of bytes that are decompressed at once; at the highest ratio they produce 32 MiB.
        copy: copies a decompressor, if supported.
    """

    magic: bytes
    begin: re.Pattern[bytes]
    open: Callable[[], _ArchiveMember]
    error: Callable[[], type[Exception]]
    step: int
    copy: Callable[[Any], _ArchiveMember] | None = None


# Few logs need zstd.
def _zstd_member() -> _ArchiveMember:
    from epochzero import zstd

    return zstd.ZstdDecompressor()


def _zstd_error() -> type[Exception]:
    from epochzero import zstd

    return zstd.ZstdError


_PACKINGS = (
    _Packing(
        GZIP,
        re.compile(rb"\x1f\x8b\x08"),
        lambda: zlib.decompressobj(wbits=31),
        lambda: zlib.error,
        1 << 14,
        lambda member: member.copy(),
    ),
    _Packing(
        ZSTD,
        # A data frame, or one that readers skip; pzstd writes both.
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        _zstd_member,
        _zstd_error,
        1 << 10,
    ),
)
_LONGEST_BEGIN = 4


def _unpacked(raw: BinaryIO, packing: _Packing, on_damage: OnDamage) -> Iterator[bytes]:
    """The content of a compressed stream. A damaged member is read up to the damage, and reading
    continues with the next member.

    A log that was still being compressed when its node crashed contains the most important lines.
    """
    member: _ArchiveMember | None = None
    damaged = torn = False
    data = b""
    while chunk := raw.read(packing.step):
        data += chunk
        while data:
            if member is None:
                found = packing.begin.search(data)
                # Without one, the last bytes may be the first of it.
                at = found.start() if found else max(0, len(data) - _LONGEST_BEGIN + 1)
                damaged = damaged or bool(data[:at].strip(b"\0"))  # gzip files may be padded
                data = data[at:]
                if found is None:
                    break
                member = packing.open()
                if torn:
                    yield b"\n"  # Halves of two lines must not become one.
                torn = False
            before = packing.copy(member) if packing.copy else None
            try:
                yield member.decompress(data)
            except packing.error():
                yield _undamaged(before, data) if before else b""
                damaged, torn, member, data = True, True, None, data[1:]
                continue
            data = member.unused_data if member.eof else b""
            member = None if member.eof else member
    if damaged or (member is None and data.strip(b"\0")):
        on_damage(DAMAGED)
    if member is not None:
        on_damage(CUT_OFF)


def _undamaged(member: _ArchiveMember, data: bytes) -> bytes:
    """The decompressed bytes before a damage."""
    pieces: list[bytes] = []
    with suppress(zlib.error):
        pieces.extend(member.decompress(data[at : at + 1]) for at in range(len(data)))
    return b"".join(pieces)


def blocks_of(stream: IO[bytes]) -> Iterator[Block]:
    """The blocks of an uncompressed stream."""
    return _blocks(stream, 0, b"")


def blocks_from(stream: BinaryIO, start: int) -> Iterator[Block]:
    """The blocks of an uncompressed file, starting with the first one in or after a chunk.

    They equal those of `blocks_of`: a block ends with the last line that ends in a chunk.

    Args:
        stream: seekable.
        start: start of the chunk, a multiple of `BLOCK_BYTES`.
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
MOST_CONTROL = 0.07
"""Of random bytes 0.105 are control characters, give or take 0.005 in `HEAD_BYTES`."""
FEWEST_CONTROL = 16
HOLE = re.compile(rb"\0{16,}")
"""NUL bytes that a crashed node or file server left in a file; single ones are binary data."""


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are binary: too many are control characters. Holes do not
    count.
    """
    text = HOLE.sub(b"", head).lstrip(b"\0")
    control = len(text) - len(text.translate(None, _CONTROL))
    return control > max(FEWEST_CONTROL, MOST_CONTROL * len(text))


_UTF16 = (
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"", "utf-16-le"),
    (b"", "utf-16-be"),
)
FEWEST_LATIN = 32
MOST_LATIN = 0.9


def _is_latin(head: bytes, encoding: str) -> bool:
    """Whether nearly all characters in UTF-16 are below U+0100 and none is NUL."""
    high, low = (head[1::2], head[::2]) if encoding == "utf-16-le" else (head[::2], head[1::2])
    return len(low) >= FEWEST_LATIN and 0 not in low and high.count(0) >= MOST_LATIN * len(high)


def find_logs(paths: Iterable[Path]) -> tuple[Log, ...]:
    """The logs at the given paths: each file itself, and each directory's log files.

    Flight-recorder dumps among them are compared with each other and become one log.

    Args:
        paths: files, directories, or `STDIN`.

    Raises:
        InputError: a path does not exist, cannot be read, or is a directory without logs.
    """
    logs: list[Log] = []
    dumps: list[Path] = []
    for path in paths:
        if path == STDIN:
            logs.append(Log(name="<stdin>", path=path))
        elif _is_folder(path):
            found, recorded = _folder_logs(path), list(_dumps_in(path))
            dumps.extend(recorded)
            if not found and not recorded:
                raise InputError(
                    f"{path}: no log files in this directory; expected names such as *.log, *.out, *.err, *.txt, stdout, "
                    "stderr, or these with .gz or .zst"
                )
            logs.extend(found)
        elif _is_dump(path):
            dumps.append(path)
        elif path.suffix == ".py" and path.exists():
            raise InputError(
                f"{path}: a program, not a log; `epochzero check -- python {path}` predicts its failures"
            )
        elif path.exists():
            logs.append(_file_log(path, path.as_posix()))
        else:
            raise InputError(f"{path}: no such file or directory")
    return (*logs, *dump_logs(dumps))


def dump_logs(dumps: Sequence[Path]) -> tuple[Log, ...]:
    """What the flight-recorder dumps of a job's ranks show together, as one log; none without dumps."""
    if not dumps:
        return ()
    text, time = report_of(dumps)
    name = f"flight recorder ({counted(len(dumps), 'dump')})"
    return (Log(name=name, text=text.encode(), time=time),)


def _dumps_in(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if _is_dump(path))


def _is_dump(path: Path) -> bool:
    if not DUMP_NAME.search(path.name) or not path.is_file():
        return False
    try:
        with open_file(path) as stream:
            return looks_like_dump(stream.read(HEAD_BYTES))
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    """Whether the path is a readable directory."""
    try:
        # Not `is_dir`: from Python 3.14 on, it hides that a path may not be read.
        if stat.S_ISDIR(path.stat().st_mode):
            os.scandir(path).close()
            return True
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from error
    return False


_LOG_NAME = re.compile(
    r"(?:\.(?:log|out|err|txt|stdout|stderr)(?:\.\d+)?|^(?:stdout|stderr|log|output)"
    r"|^slurm-[\w.-]+|\.[oe]\d+|^error\.json)(?:\.(?:gz|zst))?$",
    re.IGNORECASE,
)
_NO_LOG_NAME = re.compile(r"^(?:requirements.*|environment)\.txt$", re.IGNORECASE)
FACTS_NAMES = (
    "facts.json",
    "sacct*.txt",
    "*.sacct",
    "kubectl*.json",
    "kubectl*.txt",
    "describe*.txt",
    "pod*.json",
)
"""Names of files with facts about a job; if two differ, the earlier pattern has priority."""
_RANK_NAME = re.compile(r"^(?:rank|worker|node|gpu|proc|process|task)[-_.]?\d+(?:\.(?:gz|zst))?$")


def _folder_logs(folder: Path) -> list[Log]:
    """The logs of a directory; without any, the files with facts directly in it, which can report
    events such as an eviction.
    """
    logs = [path for path in folder.rglob("*") if is_log_name(path.name) and path.is_file()]
    facts = [path for path in folder.iterdir() if is_facts_name(path.name) and path.is_file()]
    found = [_file_log(path, path.relative_to(folder).as_posix()) for path in sorted(logs or facts)]
    return last_attempts(found)


def is_log_name(name: str) -> bool:
    """Whether a file of this name, without directories, is a log.

    >>> is_log_name("slurm-4242.out"), is_log_name("model.pt")
    (True, False)
    """
    named_as_log = _LOG_NAME.search(name) or _RANK_NAME.search(name)
    return bool(named_as_log and not _NO_LOG_NAME.search(name) and not is_facts_name(name))


def is_facts_name(name: str) -> bool:
    """Whether a file of this name, without folders, is taken for facts about a job: our own
    ``facts.json``, or output of ``sacct`` or ``kubectl``.

    >>> is_facts_name("describe-trainer-0.txt"), is_facts_name("train.txt")
    (True, False)
    """
    return any(fnmatchcase(name.lower(), pattern) for pattern in FACTS_NAMES)


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


def _content(path: Path) -> bytes:
    with open_file(path) as stream:
        return stream.read()


def _recorded_error(path: Path) -> tuple[bytes, float | None] | None:
    """The traceback that torchelastic wrote for a rank, and when; None for any other JSON."""
    try:
        message = json.loads(_content(path))["message"]
        if isinstance(message, str):
            return message.encode(), None
        extra = message["extraInfo"]
        return str(extra["py_callstack"]).encode(), float(extra["timestamp"])
    except OSError as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


_OF_RANK = r"(?:^|[/_.\-])(?:global[-_]?)?rank[-_.=]?(\d+)(?![\d.]*\d)"
_OF_WORKER = (
    r"(?:^|[/_.\-])(?:worker|workerlog|proc|process|task|trainer|gpu)[-_.=]?(\d+)(?=\D|$)",
    # ... but the last part of a date or a time is no rank
    r"(?:^|/)[^/]*?(?<!\d\d[._-]\d\d)[._-](\d{1,3})\.(?:log|out|err|stdout|stderr)(?:\.\w+)?$",
)


@cache
def _rank_patterns() -> Sequence[re.Pattern[str]]:
    """What names the rank in the path of a log; what launchers name comes before what users may."""
    own = chain.from_iterable(launcher.rank_logs for launcher in launchers.every())
    return [re.compile(pattern, re.IGNORECASE) for pattern in (_OF_RANK, *own, *_OF_WORKER)]


@cache
def _job_patterns() -> Sequence[re.Pattern[str]]:
    own = chain.from_iterable(launcher.job_logs for launcher in launchers.every())
    return [re.compile(pattern) for pattern in own]


def rank_of(name: str) -> int | None:
    """The rank that a log's name tells, by the layouts of torchrun, Slurm, Horovod and others.

    >>> rank_of("attempt_0/3/stderr.log")
    3
    >>> rank_of("logs/rank_12.log.gz")
    12
    """
    if any(pattern.search(name) for pattern in _job_patterns()):
        return None
    for pattern in _rank_patterns():
        if found := pattern.search(name):
            return int(found[1])
    return None
