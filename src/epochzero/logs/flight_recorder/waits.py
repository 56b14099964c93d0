"""Comparing the dumps of all ranks: which of them the others wait for.

In a correct program all ranks of a process group call the same collectives in the same order. A
rank that waits in one group because another rank waits in a second group is not to blame; what is
reported is the end of that chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from epochzero.logs.flight_recorder.dumps import Dump, Operation

FaultKind = Literal["absent", "mismatch", "cycle", "not_started", "stuck"]

# Their tensors may differ in size between ranks.
_UNEVEN = frozenset(
    (
        "gather",
        "scatter",
        "all_to_all",
        "alltoall",
        "alltoall_base",
        "allgather",
        "all_gather",
        "send",
        "recv",
    )
)


@dataclass(frozen=True, slots=True)
class CollectiveFault:
    """Why ranks wait in a collective.

    Attributes:
        kind: ``absent``: ranks did not call it. ``mismatch``: ranks called another one, or with
            other tensors. ``cycle``: ranks wait for each other in different groups.
            ``not_started``: all called it, and the GPUs of some never reached it. ``stuck``: all
            started it and it did not complete.
        description: of the process group.
        blamed: the ranks that the others wait for; empty for ``stuck``.
        blamed_call: what the first of them called instead, or last; None if nothing is recorded.
        waiting: the ranks that wait.
        call: in which they wait, as the first of them recorded it.
        missing: ranks of the group without a dump.
    """

    kind: FaultKind
    description: str
    blamed: tuple[int, ...]
    blamed_call: Operation | None
    waiting: tuple[int, ...]
    call: Operation
    missing: tuple[int, ...] = ()


def first_fault(dumps: Sequence[Dump]) -> CollectiveFault | None:
    """What the ranks wait for; None if no rank waits.

    Args:
        dumps: of one job at about one time, at most one of each rank.
    """
    groups = {call.group for dump in dumps for call in dump.calls}
    compared = [_Group(name, dumps) for name in sorted(groups)]
    faults = [fault for group in compared for fault in group.faults()]
    faults.extend(_unanswered(dumps))
    if not faults:
        return None
    waiting = {rank for fault in faults if fault.kind != "mismatch" for rank in fault.waiting}
    ends = [fault for fault in faults if not waiting.intersection(fault.blamed)]
    if ends:
        return min(ends, key=lambda fault: (_ORDER[fault.kind], fault.call.created))
    first = min(faults, key=lambda fault: fault.call.created)
    if first.kind != "absent":
        return first
    blamed = next((dump.pending for dump in dumps if dump.rank == first.blamed[0]), None)
    return CollectiveFault(
        "cycle",
        first.description,
        first.blamed,
        blamed or first.blamed_call,
        first.waiting,
        first.call,
    )


_ORDER: Mapping[FaultKind, int] = {
    "mismatch": 0,
    "absent": 1,
    "cycle": 2,
    "not_started": 3,
    "stuck": 4,
}


class _Group:
    """A process group in all dumps."""

    def __init__(self, name: str, dumps: Sequence[Dump]) -> None:
        self.description = next(filter(None, (dump.descriptions.get(name) for dump in dumps)), name)
        self.calls: dict[int, dict[int, Operation]] = {}
        known = {rank for dump in dumps for rank in dump.groups.get(name, ())}
        if not known and self.description == "default_pg":
            known = {rank for dump in dumps for ranks in dump.groups.values() for rank in ranks}
        for dump in dumps:
            own = {c.number: c for c in dump.calls if c.group == name and c.peer is None}
            if own or dump.rank in known:
                self.calls[dump.rank] = own
        self.missing = tuple(sorted(known - self.calls.keys()))
        self._before: dict[tuple[str, int, int], Operation | None] = {}
        self._habits: Counter[tuple[object, ...]] = Counter()
        for dump in dumps:
            for before, call in zip((None, *dump.calls), dump.calls, strict=False):
                self._before[call.group, dump.rank, call.number] = before
                self._habits[_step(before, call)] += call.finished

    def faults(self) -> Iterator[CollectiveFault]:
        """The first collective of this group that cannot complete, if any."""
        numbers = sorted({number for own in self.calls.values() for number in own})
        for number in numbers:
            called = {rank: own[number] for rank, own in self.calls.items() if number in own}
            pending = [rank for rank, call in called.items() if not call.finished]
            if fault := self._mismatch(called, bool(pending)) or self._absent(
                number, called, pending
            ):
                yield fault
                return

    def _mismatch(self, called: Mapping[int, Operation], pending: bool) -> CollectiveFault | None:
        """Whether ranks called different operations under one number; tensors of other sizes only
        count where a rank waits.
        """
        kinds = Counter(_kind(call, tensors=pending) for call in called.values())
        if len(kinds) < 2:
            return None
        usual = max(kinds, key=lambda kind: (kinds[kind], self._habit(kind, called, pending)))
        agreeing = [rank for rank, call in called.items() if _kind(call, tensors=pending) == usual]
        others = sorted(set(called).difference(agreeing))
        return self._fault("mismatch", others, called[others[0]], agreeing, called)

    def _habit(
        self, kind: tuple[object, ...], called: Mapping[int, Operation], pending: bool
    ) -> int:
        """How often ranks went from the call before to such a call until then. Of two ranks that
        disagree, the one that left the loop's usual order is to blame.
        """
        return sum(
            self._habits[_step(self._before[call.group, rank, call.number], call)]
            for rank, call in called.items()
            if _kind(call, tensors=pending) == kind
        )

    def _absent(
        self, number: int, called: Mapping[int, Operation], pending: Sequence[int]
    ) -> CollectiveFault | None:
        if not pending:
            return None
        # A buffer that is full has dropped the oldest calls: only a rank that is behind is absent.
        behind = [rank for rank, own in self.calls.items() if max(own, default=0) < number]
        if behind:
            last = self.calls[behind[0]]
            before = last[max(last)] if last else None
            return self._fault("absent", behind, before, pending, called)
        if self.missing:
            return self._fault("absent", (), None, pending, called)
        late = [rank for rank in pending if called[rank].state == "scheduled"]
        if late and len(late) < len(pending):
            started = [rank for rank in pending if rank not in late]
            return self._fault("not_started", late, called[late[0]], started, called)
        return self._fault("stuck", (), None, pending, called)

    def _fault(
        self,
        kind: FaultKind,
        blamed: Iterable[int],
        blamed_call: Operation | None,
        waiting: Iterable[int],
        called: Mapping[int, Operation],
    ) -> CollectiveFault:
        waits = tuple(sorted(waiting))
        return CollectiveFault(
            kind,
            self.description,
            tuple(sorted(blamed)),
            blamed_call,
            waits,
            called[waits[0]],
            self.missing,
        )


def _kind(call: Operation, *, tensors: bool) -> tuple[object, ...]:
    """Equal for calls that belong together."""
    if not tensors or call.operation in _UNEVEN:
        return (call.operation,)
    return call.operation, call.inputs, call.dtypes


def _step(before: Operation | None, call: Operation) -> tuple[object, ...]:
    """From one place in the program to the next."""
    return (before and (before.operation, before.frames), call.operation, call.frames)


def _unanswered(dumps: Sequence[Dump]) -> Iterator[CollectiveFault]:
    """Sends and receives that the rank at the other end has not called."""
    by_rank = {dump.rank: dump for dump in dumps}
    for dump in dumps:
        for call in dump.calls:
            if call.peer is None or call.finished:
                continue
            other = by_rank.get(call.peer)
            if other is None or any(_answers(answer, call, dump.rank) for answer in other.calls):
                continue
            yield CollectiveFault(
                "absent",
                dump.descriptions.get(call.group) or call.group,
                (call.peer,),
                other.calls[-1] if other.calls else None,
                (dump.rank,),
                call,
            )


def _answers(answer: Operation, call: Operation, rank: int) -> bool:
    return (
        answer.peer == rank
        and answer.group == call.group
        and answer.number == call.number
        and answer.operation != call.operation
    )
