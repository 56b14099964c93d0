"""What the iterations that a dry run leaves out would have kept, by what those before them keep.

What a line allocates is kept when something of it is left of each iteration, and the next iteration does not
free that of one alone: so it is with the items of a list, and the graphs of losses that are added up. What
only waits to be replaced (the last output, a queue of fixed length) goes one after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from epochzero.check.dryrun.memory.allocator import MIN_BLOCK
from epochzero.check.dryrun.memory.trace import Alloc, Event, Free, Skip, Trace
from epochzero.check.dryrun.memory.units import MIB, size_text

NEVER = 1 << 60
"""The event at which a storage goes that outlives the job."""


def extrapolated(trace: Trace) -> Trace:
    """The trace as if no iteration had been left out.

    Where it is not sure that each iteration keeps as much (`Skip.sure`), the least is without that.
    """
    if not trace.skips:
        return trace
    most = _MemoryGrowth(trace, trace.skips)
    least = _MemoryGrowth(trace, [skip for skip in trace.skips if skip.sure])
    return replace(
        trace,
        events=tuple(most.events()),
        kinds=most.kinds,
        least=None
        if most.sizes == least.sizes
        else replace(trace, events=tuple(least.events()), kinds=least.kinds),
        assumed=(*trace.assumed, *most.assumptions()),
    )


class _MemoryGrowth:
    """What is kept over some skips.

    Attributes:
        sizes: storage -> bytes that like ones take of the iterations that are left out.
        kinds: of storages, those that are added among them.
    """

    def __init__(self, trace: Trace, skips: Sequence[Skip]) -> None:
        self._trace = trace
        self._made: dict[int, Alloc] = {}
        self._gone: dict[int, int] = defaultdict(lambda: NEVER)
        for number, event in enumerate(trace.events):
            if isinstance(event, Alloc):
                self._made[event.storage] = event
            elif isinstance(event, Free):
                self._gone[event.storage] = number
        self._next = max(self._made, default=-1) + 1
        self._added: dict[int, list[Alloc]] = defaultdict(list)
        self._with: dict[int, list[int]] = defaultdict(list)
        self._most: dict[tuple[str, int], tuple[int, int]] = {}
        self.kinds = dict(trace.kinds)
        self.sizes: dict[int, int] = {}
        for skip in skips:
            self._extend(skip)

    def events(self) -> Iterator[Event]:
        """The events of the trace, with what is added."""
        for number, event in enumerate(self._trace.events):
            yield from self._added.get(number, ())
            yield event
            if isinstance(event, Free):
                yield from map(Free, self._with.get(event.storage, ()))
        yield from self._added.get(len(self._trace.events), ())

    def assumptions(self) -> Iterator[str]:
        """The lines that keep something, for people, with the loop in which each keeps most."""
        for (path, line), (size, count) in self._most.items():
            if size >= MIB:
                yield (
                    f"{path}:{line} retains memory in each iteration: {size_text(size)} in"
                    f" {count:,} skipped iterations"
                )

    def _extend(self, skip: Skip) -> None:
        *older, first, second, end = skip.begun
        before, after = self._kept(skip, first, second), self._kept(skip, second, end)
        sites = {site for site, _ in before}
        for begun, ended in pairwise([*older, first]):
            sites &= {self._made[number].site for number in self._alive(skip, begun, ended)}
        kept: Counter[tuple[str, int]] = Counter()
        for storage in self._alive(skip, second, end):
            made, ends = self._made[storage], self._ends(storage, skip)
            if made.site in sites and before[ends]:
                # Each iteration retains what both retained; one of them may also have allocated something once at this line.
                size = (
                    self._size(storage) * min(before[ends], after[ends]) // after[ends] * skip.count
                )
                self._add(skip, storage, size)
                site = self._trace.site(made)
                kept[site.path, site.line] += size
        for line, size in kept.items():
            self._most[line] = max(self._most.get(line, (0, 0)), (size, skip.count))

    def _add(self, skip: Skip, storage: int, size: int) -> None:
        self.sizes[storage] = self.sizes.get(storage, 0) + size
        self.kinds[self._next] = self._trace.kind(storage)
        self._added[skip.at].append(Alloc(self._next, size, self._made[storage].site))
        self._with[storage].append(self._next)
        self._next += 1

    def _alive(self, skip: Skip, first: int, end: int) -> list[int]:
        return [
            storage
            for storage in range(first, min(end, self._next))
            if storage in self._made and self._gone[storage] >= skip.at
        ]

    def _kept(self, skip: Skip, first: int, end: int) -> Counter[tuple[int, bool]]:
        """Return the bytes that an iteration retains, by `_ends`."""
        kept: Counter[tuple[int, bool]] = Counter()
        for storage in self._alive(skip, first, end):
            kept[self._ends(storage, skip)] += self._size(storage)
        return kept

    def _size(self, storage: int) -> int:
        """Return the bytes of a storage, including those of similar storages that were added."""
        block = -(-self._made[storage].size // MIN_BLOCK) * MIN_BLOCK
        return block + self.sizes.get(storage, 0)

    def _ends(self, storage: int, skip: Skip) -> tuple[int, bool]:
        """The site of a storage, and whether it goes in the next iteration."""
        within = skip.until is not None and self._gone[storage] < skip.until
        return self._made[storage].site, within
