"""Which rank the others wait for, and what for: ranks of a job in which nothing moves, in a sentence.

Ranks that wait at the same place are one group. A rank outside of collectives is what the others wait for; of
several the smallest group. If all are in collectives, their flight recorders show which rank did not call what the
others called. Without recorders two things tell who is wrong: a rank whose loop counters differ from those of the others has
left a call out, or made one too many; and a rank that receives from one that has gone on waits for a message which was never sent.

Grouping of stacks to find outliers: Wan et al., ByteRobust, SOSP 2025.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epochzero.number_formats import ranks_text
from epochzero.platform import name_of
from epochzero.run.observers.stacks import Stack

if TYPE_CHECKING:
    from epochzero.logs.flight_recorder import Dump


@dataclass(frozen=True, slots=True)
class HungRank:
    """A rank in which nothing moves; ``number`` is None where the job has no ranks.

    Attributes:
        number: of the rank.
        pid: of its main process.
        stack: of its main thread.
        children: stacks of the Python processes that it started.
        kernel: process -> what it waits for as the kernel sees it.
        dump: of its flight recorder; None without one.
    """

    number: int | None
    pid: int
    stack: Stack
    children: Mapping[int, Stack]
    kernel: Mapping[int, str]
    dump: Dump | None = field(default=None, kw_only=True)

    @property
    def collective(self) -> str:
        """The collective in which it waits; its recorder knows that of a rank that polls, or waits for its GPU."""
        pending = self.dump and self.dump.pending
        return self.stack.collective or (pending.operation if pending else "")

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for ranks that wait at the same place."""
        own = tuple((frame.file, frame.line) for frame in self.stack.user_frames)
        thread = self._thread.place if self._thread is not None else ""
        return (own, self.collective or self.stack.call, self._helper[1], thread)

    @property
    def culprit(self) -> Stack:
        """The stack to look at: of the process or thread that it waits for, if it waits for one of its own."""
        if self._thread is not None and self.stack.joins:
            return self._thread
        pid, _ = self._helper
        waits_for_it = self.stack.waits_for_others and not self.collective
        return self.children[pid] if pid and waits_for_it else self.stack

    @property
    def _helper(self) -> tuple[int, str]:
        """A process that it started and that waits in the user's code, and where; ``(0, "")`` for none."""
        for pid, stack in self.children.items():
            if stack.frames and stack.place != self.stack.place and not stack.collective:
                return pid, f"{stack.place}{_call(stack)}"
        return 0, ""

    @property
    def _thread(self) -> Stack | None:
        """A thread of it in the user's code, if it waits for a thread; not one that only sleeps, as to report at intervals."""
        if not self.stack.waits_for_threads:
            return None
        elsewhere = (thread for thread in self.stack.helpers if thread.place != self.stack.place)
        return next((thread for thread in elsewhere if not thread.sleeps), None)

    @property
    def what(self) -> str:
        """Where it waits and for what, in words without its number."""
        stack = self.stack
        if not stack.frames:
            return "(Python stack not available)" + self._by_kernel(self.pid)
        if self.collective:
            return f"in {self.collective} at {stack.place}"
        pid, helper = self._helper
        where = f"at {stack.place}{_call(stack)}"
        if pid and stack.waits_for_others:
            return f"{where}, for its process {pid} at {helper}{self._by_kernel(pid)}"
        if self._thread is not None:
            where += f", while its thread is at {self._thread.place}{_call(self._thread)}"
        return where + self._by_kernel(self.pid)

    @property
    def shown(self) -> str:
        """The stacks that explain where it waits, the innermost frame first."""
        culprit = self.culprit
        texts = [] if culprit is self.stack else [culprit.innermost]
        return "\n".join([*texts, self.stack.innermost])

    def _by_kernel(self, pid: int) -> str:
        what = self.kernel.get(pid, "")
        return f": it {what}" if what else ""


@dataclass(frozen=True, slots=True)
class HangReport:
    """What is known of a hang.

    Attributes:
        text: in a sentence.
        rank: the one that the others wait for; None if that is unknown, or is a group.
        first: a rank whose stack explains the hang.
    """

    text: str
    rank: int | None
    first: HungRank


def report_of(ranks: Sequence[HungRank]) -> HangReport:
    """Reads the stacks of all ranks together.

    Args:
        ranks: at least one.
    """
    groups = groups_of(ranks)
    parts = [
        f"{who(group)} {'wait' if len(group) > 1 else 'waits'} {group[0].what}" for group in groups
    ]
    first = groups[0][0]
    if not first.collective:
        rank = first.number if len(groups[0]) == 1 else None
        return HangReport("; ".join(parts), rank, first)
    # All wait for each other: the smallest group is not more to blame than any other.
    suspect, evidence = _suspect(ranks)
    named = next((r for r in ranks if suspect is not None and r.number == suspect), first)
    return HangReport("; ".join([*parts, *evidence]), suspect, named)


def groups_of(ranks: Sequence[HungRank]) -> Sequence[Sequence[HungRank]]:
    """Ranks that wait at the same place together, those first for which the others wait."""
    groups: dict[tuple[object, ...], list[HungRank]] = {}
    for rank in ranks:
        groups.setdefault(rank.signature, []).append(rank)
    return sorted(groups.values(), key=lambda group: (bool(group[0].collective), len(group)))


def who(group: Sequence[HungRank]) -> str:
    """The ranks of a group, or the process of a job without ranks."""
    numbers = sorted(rank.number for rank in group if rank.number is not None)
    if not numbers:
        return f"{name_of(group[0].pid) or 'process'} {group[0].pid}"
    return ranks_text(numbers)


def log_of(rank: HungRank, text: str) -> str:
    """The hang as a log with a traceback of the process that the others wait for."""
    prefix = f"[rank{rank.number}]: " if rank.number is not None else ""
    lines = ["Traceback (most recent call last):"]
    for frame in rank.culprit.frames:
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        lines += [f"    {frame.code}"] if frame.code else []
    return "".join(f"{prefix}{line}\n" for line in [*lines, f"JobHung: {text}"])


def _suspect(ranks: Sequence[HungRank]) -> tuple[int | None, Sequence[str]]:
    """The rank that is out of step, as far as counters and messages tell, and why."""
    # A job that does not hang does not load them.
    from epochzero.logs.flight_recorder import first_fault, sentence

    known = {rank.number: rank for rank in ranks if rank.number is not None}
    fault = first_fault([rank.dump for rank in ranks if rank.dump is not None])
    if fault is not None and fault.blamed:
        return (fault.blamed[0] if len(fault.blamed) == 1 else None), [sentence(fault)]
    counted = _uneven(known)
    peers = {number: rank.stack.peer for number, rank in known.items()}
    if counted is not None:
        name, values = counted
        by_value = Counter(values.values())
        common, count = by_value.most_common(1)[0]
        odd = [number for number, value in values.items() if value != common]
        if count == 1:
            text = ", ".join(
                f"rank {n} is at {name}={value}" for n, value in sorted(values.items())
            )
            return None, [text]
        several = ranks_text(sorted(odd))
        difference = f"{several} {'is' if len(odd) == 1 else 'are'} at {name}={values[odd[0]]}, the others at {name}={common}"
        return (odd[0] if len(odd) == 1 else None), [difference]
    return None, list(_ring(peers))


def _uneven(known: Mapping[int, HungRank]) -> tuple[str, Mapping[int, int]] | None:
    """The outermost loop counter that all ranks have, and whose values differ but not from rank to rank."""
    counters = {number: rank.stack.counters for number, rank in known.items()}
    first = next(iter(counters.values()), {})
    for key in first:
        if not all(key in values for values in counters.values()):
            continue
        values = {number: counters[number][key] for number in counters}
        distinct = len(set(values.values()))
        if 1 < distinct < max(3, len(values)) and values != {number: number for number in values}:
            return key[1], values
    return None


def _ring(peers: Mapping[int, int | None]) -> Iterator[str]:
    """Ranks that wait for a message of each other in a ring, if there is one."""
    for begin in peers:
        path, at = [begin], peers[begin]
        while at is not None and at not in path and at in peers:
            path.append(at)
            at = peers[at]
        if at == begin and len(path) > 1:
            chain = " for ".join(
                f"rank {number}" if n == 0 else str(number) for n, number in enumerate(path)
            )
            yield f"{chain} for {begin}: they wait for each other, so that one message was not sent"
            return


def _call(stack: Stack) -> str:
    return f" (`{stack.call}`)" if stack.call else ""
