"""The allocations of a dry run, as its child process wrote them: untrusted, and bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochzero.errors import InputError

KINDS = (
    "parameter",
    "gradient",
    "optimizer",
    "activation",
    "input",
    "buffer",
    "communication",
    "temporary",
)
MOST_EVENTS = 5_000_000
MOST_BYTES = 1 << 50


@dataclass(frozen=True, slots=True)
class AllocationSite:
    """What allocated: a line of the user's code, and the path of the layer that was called."""

    path: str
    line: int
    layer: str


@dataclass(frozen=True, slots=True)
class Alloc:
    """A storage of `size` bytes comes to be."""

    storage: int
    size: int
    site: int


@dataclass(frozen=True, slots=True)
class Free:
    """A storage goes."""

    storage: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment with a name, such as ``backward`` or ``step 1``."""

    name: str


Event = Alloc | Free | Mark


@dataclass(frozen=True, slots=True)
class Skip:
    """Iterations of a loop are left out.

    Attributes:
        at: number of the event before which they would have been.
        count: how many.
        begun: storages at which the iterations before began, two at least, and the last of them ended.
        sure: what those keep, each surely keeps.
        until: number of the event at which the next iteration ended; None where none did.
    """

    at: int
    count: int
    begun: tuple[int, ...]
    sure: bool
    until: int | None


@dataclass(frozen=True)
class Trace:
    """All that was allocated on a GPU, in order.

    Attributes:
        events: in order.
        kinds: of storages, one of `KINDS`; what is not named is ``temporary``.
        sites: that allocated, by number.
        compiled: part of the job is compiled by torch, which the trace leaves out.
        computed: of such a job, storages that its compiler does not do without.
        least: the same job with as little as it may take, where that is not known exactly; else None.
        assumed: what makes the difference, for people.
        skips: iterations that the dry run left out, in order.
        names: of parameters, their gradients and optimizer states, as in ``named_parameters``.
    """

    events: tuple[Event, ...]
    kinds: dict[int, str] = field(default_factory=dict)
    sites: tuple[AllocationSite, ...] = ()
    compiled: bool = False
    computed: frozenset[int] = frozenset()
    least: Trace | None = None
    assumed: tuple[str, ...] = ()
    skips: tuple[Skip, ...] = ()
    names: dict[int, str] = field(default_factory=dict)

    def kind(self, storage: int) -> str:
        """What a storage is for."""
        return self.kinds.get(storage, "temporary")

    def site(self, event: Alloc) -> AllocationSite:
        """What made an allocation; an empty place where that is unknown."""
        known = 0 <= event.site < len(self.sites)
        return self.sites[event.site] if known else AllocationSite("", 0, "")


def read(path: Path) -> Trace:
    """A trace from its JSON lines.

    Raises:
        InputError: it is none.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            return trace_of(json.loads(line) for line in lines)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from error


def trace_of(lines: Iterable[Any]) -> Trace:
    """A trace from its lines, as JSON has them.

    Raises:
        InputError: they are none.
    """
    try:
        return _trace(lines)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"no trace of allocations: {error}") from error


def _trace(records: Iterable[Any]) -> Trace:
    events: list[Event] = []
    kinds: dict[int, str] = {}
    sites: list[AllocationSite] = []
    compiled = False
    computed: set[int] = set()
    skips: list[Skip] = []
    names: dict[int, str] = {}
    for record in records:
        if "kinds" in record:
            kinds_of = record["kinds"].items()
            kinds.update({int(key): kind for key, kind in kinds_of if kind in KINDS})
        elif "names" in record:
            names.update({int(key): str(name) for key, name in record["names"].items()})
        elif "where" in record:
            sites += [
                AllocationSite(str(path), int(line), str(name))
                for path, line, name in record["where"]
            ]
        elif "skip" in record:
            skips.append(_skip(record["skip"]))
        elif "computed" in record:
            compiled = True
            computed.update(map(int, record["computed"]))
        else:
            events.append(_event(record))
        if len(events) + len(skips) > MOST_EVENTS:
            raise ValueError(f"more than {MOST_EVENTS} events")
    return Trace(
        tuple(events),
        kinds,
        tuple(sites),
        compiled,
        frozenset(computed),
        skips=tuple(skips),
        names=names,
    )


def _skip(record: Any) -> Skip:
    at, count, begun = int(record["at"]), int(record["count"]), tuple(map(int, record["begun"]))
    in_order = at >= 0 and len(begun) > 2 and begun == tuple(sorted(begun))
    if not (in_order and 0 <= count <= MOST_BYTES):
        raise ValueError(f"{count} iterations that are left out")
    until = None if record["until"] is None else int(record["until"])
    return Skip(at, count, begun, record["sure"] is True, until)


def _event(record: Any) -> Event:
    if "a" in record:
        size = int(record["n"])
        if not 0 <= size <= MOST_BYTES:
            raise ValueError(f"a storage of {size} bytes")
        return Alloc(int(record["a"]), size, int(record["w"]))
    return Free(int(record["f"])) if "f" in record else Mark(str(record["m"])[:100])
