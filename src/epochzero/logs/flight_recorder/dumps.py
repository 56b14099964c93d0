"""Reading one dump, a pickle or JSON, without running anything that it contains."""

from __future__ import annotations

import ast
import glob
import io
import json
import pickle
import re
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from epochzero.errors import InputError, reading
from epochzero.file_access import open_file
from epochzero.logs.traceback import Frame
from epochzero.platform import is_private

DUMP_NAME = re.compile(
    r"(?:^|[_.-])(?:trace|dump|fr)[\w.-]*?(\d+)(?:\.(?:pickle|pkl|json))?$", re.IGNORECASE
)
"""Of a flight-recorder dump, with the rank: its prefix is set by TORCH_FR_DUMP_TEMP_FILE, and
``nccl_trace_rank_`` by default."""
LARGEST_BYTES = 256 << 20
"""2,000 calls with their stacks, the recorder's default, are about 4 MB."""

_PREFIX_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_PREFIX = "/tmp/nccl_trace_rank_"
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_KEYS = (b"pg_config", b"pg_status", b"entries", b"comm_lib_version", b"nccl_comm_state")

_LATEST = 4e9
"""Seconds since the epoch, in 2096."""
_LONGEST_NAME = 400

_DATA_OPCODES = (
    pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.POP_MARK, pickle.DUP,
    pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE,
    pickle.INT, pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1,
    pickle.FLOAT, pickle.BINFLOAT,
    pickle.BINUNICODE, pickle.SHORT_BINUNICODE, pickle.BINUNICODE8,
    pickle.BINSTRING, pickle.SHORT_BINSTRING, pickle.BINBYTES, pickle.SHORT_BINBYTES,
    pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.LIST,
    pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3,
    pickle.EMPTY_DICT, pickle.DICT, pickle.SETITEM, pickle.SETITEMS,
    pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.GET, pickle.BINGET, pickle.LONG_BINGET,
    pickle.MEMOIZE,
)  # fmt: skip


class _DataUnpickler(pickle._Unpickler):
    """Reads numbers, texts and containers. The opcodes that import, call or build anything do not
    exist here; the version in C cannot be restricted so, and allocates what a memo index asks for.
    """

    dispatch: ClassVar[dict[int, Callable[..., Any]]] = {
        opcode[0]: pickle._Unpickler.dispatch[opcode[0]] for opcode in _DATA_OPCODES
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """One collective or point-to-point operation that a rank has enqueued.

    Attributes:
        group: name of its process group.
        number: its sequence number in the group, from 1; equal on all ranks of a correct program.
        operation: such as ``all_reduce``.
        peer: global rank at the other end of a send or recv; None for collectives.
        inputs, outputs: shapes of the tensors.
        dtypes: of the inputs.
        state: scheduled, started or completed. Gloo reports no starts.
        finished: no one waits for it any more.
        created: when it was enqueued, in seconds since the epoch.
        frames: of the caller, outermost first.
    """

    group: str
    number: int
    operation: str
    peer: int | None
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    state: str
    finished: bool
    created: float
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Dump:
    """What one rank recorded.

    Attributes:
        rank: its global rank.
        calls: oldest first; the recorder drops the oldest when its buffer is full.
        groups: process group -> its global ranks, as far as the dump tells.
        descriptions: process group -> what the program calls it, such as ``default_pg``.
    """

    rank: int
    calls: tuple[Operation, ...]
    groups: Mapping[str, tuple[int, ...]]
    descriptions: Mapping[str, str]

    @property
    def pending(self) -> Operation | None:
        """The first call that has not finished."""
        return next((call for call in self.calls if not call.finished), None)


def looks_like_dump(head: bytes) -> bool:
    """Whether a file that begins so is a flight-recorder dump."""
    if _PICKLE.match(head):
        return any(key in head for key in _KEYS)
    return head.lstrip().startswith(b"{") and any(b'"%b"' % key in head for key in _KEYS)


def dumps_since(time: float, folder: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The dumps that ranks of this user have written on this node.

    Args:
        time: seconds since the epoch; earlier dumps are of other jobs.
        folder: the job's working directory.
        environment: of the job, which can set where the recorder writes.
    """
    set_to = next(filter(None, map(environment.get, _PREFIX_VARIABLES)), _PREFIX)
    prefix = folder / set_to
    found = []
    with suppress(OSError):
        for path in sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}*")):
            status = path.lstat()
            own = stat.S_ISREG(status.st_mode) and is_private(status)
            if own and status.st_mtime >= time and DUMP_NAME.search(path.name):
                found.append(path)
    return tuple(found)


def read_dump(path: Path) -> Dump:
    """The dump in a file whose name ends in the rank.

    Raises:
        InputError: it cannot be read, is too large, or is no such dump.
    """
    name = DUMP_NAME.search(path.name)
    if name is None:
        raise InputError(f"{path}: the name of a flight-recorder dump ends in its rank")
    with reading(path), open_file(path) as stream:
        data = stream.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_BYTES >> 20} MiB")
    try:
        return _dump(_content(data), int(name[1]))
    except (ValueError, TypeError, LookupError, AttributeError, EOFError, RecursionError,
            pickle.UnpicklingError, struct.error, OverflowError, AssertionError) as error:  # fmt: skip
        raise InputError(f"{path} is not a flight-recorder dump, or it is damaged") from error


def _content(data: bytes) -> Mapping[str, Any]:
    read = _DataUnpickler(io.BytesIO(data)).load() if _PICKLE.match(data) else json.loads(data)
    if not isinstance(read, dict) or not isinstance(read.get("entries", []), list):
        raise ValueError("no entries")
    return read


def _dump(raw: Mapping[str, Any], rank: int) -> Dump:
    groups, descriptions = {}, {}
    for key, group in raw.get("pg_config", {}).items():
        groups[str(key)] = tuple(sorted(_numbers(group.get("ranks", ()))))
        descriptions[str(key)] = _text(group.get("desc") or "")
    calls = []
    for entry in raw.get("entries", ()):
        group, description = _group(entry)
        descriptions.setdefault(group, description)
        calls.append(_call(entry, group, groups.get(group, ()), rank))
    return Dump(rank, tuple(calls), groups, descriptions)


def _numbers(ranks: object) -> list[int]:
    """Ranks are a list, or the text of one."""
    read = ast.literal_eval(ranks) if isinstance(ranks, str) and ranks else ranks
    return [int(rank) for rank in read] if isinstance(read, list | tuple) else []


def _group(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Name and description; recorders before version 2.1 know only a number."""
    name = entry.get("process_group", entry.get("pg_name", entry.get("pg_id", 0)))
    if isinstance(name, list | tuple):
        return str(name[0]), _text(name[1]) if len(name) > 1 else ""
    return str(name), ""


_OPERATION = re.compile(r"^(?:\w+:)?(?P<name>\w+)(?: (?P<first>\d+)(?P<way>->|<-)(?P<second>\d+))?")


def _call(entry: Mapping[str, Any], group: str, members: tuple[int, ...], rank: int) -> Operation:
    found = _OPERATION.match(str(entry["profiling_name"]))
    operation = found["name"] if found else _text(entry["profiling_name"])
    peer = None
    if found and found["second"]:
        # "send 0->1", "recv 1<-0": numbers within the group, the peer is the second.
        second = int(found["second"])
        peer = members[second] if second < len(members) else second
    state = str(entry.get("state", ""))
    number = entry.get("p2p_seq_id") if peer is not None else None
    return Operation(
        group=group,
        number=int(number or entry.get("collective_seq_id") or entry.get("seq_id") or 0),
        operation=operation.removeprefix("_"),
        peer=peer,
        inputs=_shapes(entry.get("input_sizes")),
        outputs=_shapes(entry.get("output_sizes")),
        dtypes=tuple(map(_text, entry.get("input_dtypes") or ())),
        state=state,
        finished=bool(entry.get("retired")) or state == "completed",
        created=_seconds(entry.get("time_created_ns")),
        frames=tuple(reversed(list(_frames(entry.get("frames") or ())))),
    )


def _seconds(nanoseconds: object) -> float:
    """Seconds since the epoch; 0 for what is no time of a dump."""
    seconds = nanoseconds / 1e9 if isinstance(nanoseconds, int) else 0.0
    return seconds if 0 < seconds < _LATEST else 0.0


def _text(value: object) -> str:
    """In one line: what a dump contains must not look like lines of a log."""
    return " ".join(str(value).split())[:_LONGEST_NAME]


def _shapes(sizes: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(sizes, list | tuple):
        return ()
    return tuple(tuple(map(int, size)) for size in sizes if isinstance(size, list | tuple))


def _frames(frames: object) -> Iterator[Frame]:
    for frame in frames if isinstance(frames, list | tuple) else ():
        with suppress(KeyError, TypeError, ValueError):
            yield Frame(_text(frame["filename"]), int(frame["line"]), _text(frame["name"]))
