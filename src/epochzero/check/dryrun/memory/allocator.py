"""torch's caching allocator: which blocks a sequence of allocations takes, and what it reserves.

A model of ``c10/cuda/CUDACachingAllocator.cpp`` and ``c10/core/AllocatorConfig.h`` (torch 2.11) by their
own names: sizes are rounded, a free block of the stream's pool is taken by best fit and split, else a
segment is asked of the GPU; blocks that are freed are merged with their free neighbours and kept. When
the GPU is full, segments that are wholly free are given back, and the allocation is tried again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from epochzero.check.dryrun.memory.options import AllocatorOptions
from epochzero.check.dryrun.memory.units import MIB

MIN_BLOCK = 512
SMALL = 1 * MIB
"""Up to this size a block comes from the pool of small ones."""
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
MIN_LARGE = 10 * MIB
"""From this size on a segment is made for one block."""
ROUND_LARGE = 2 * MIB
ROUND_UNSPLIT = 20 * MIB
"""How much larger an unsplit block may be than what it is taken for."""
ADDRESS_SPACE = LARGE_SEGMENT << 20
"""Of a segment that grows: more than any GPU has, in whole pages."""


class OutOfMemoryError(Exception):
    """The GPU has no room left.

    Attributes:
        size: bytes that were asked for.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes cannot be allocated")
        self.size = size


@dataclass(slots=True, eq=False)
class MemoryBlock:
    """A part of a segment."""

    size: int
    address: int
    pool: Pool
    free: bool = False
    mapped: bool = True
    before: MemoryBlock | None = None
    after: MemoryBlock | None = None

    @property
    def whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.before is None and self.after is None


@dataclass(slots=True, eq=False)
class Pool:
    """The free blocks of a stream, small or large, by size and address."""

    small: bool
    blocks: list[tuple[int, int, MemoryBlock]] = field(default_factory=list)
    growing: MemoryBlock | None = None

    def add(self, block: MemoryBlock) -> None:
        insort(self.blocks, (block.size, block.address, block))

    def remove(self, block: MemoryBlock) -> None:
        del self.blocks[bisect_left(self.blocks, (block.size, block.address))]

    @property
    def page(self) -> int:
        """By which a segment grows."""
        return SMALL_SEGMENT if self.small else LARGE_SEGMENT


class CachingAllocator:
    """The allocator of one GPU.

    Args:
        options: as the environment sets them.
        capacity: bytes that may be reserved; None: no limit.

    Attributes:
        allocated, reserved: bytes now.
        retries: how often free segments had to be given back.
    """

    def __init__(
        self, options: AllocatorOptions | None = None, capacity: int | None = None
    ) -> None:
        self.options = options or AllocatorOptions()
        self.capacity = capacity
        self.allocated = self.reserved = self.retries = 0
        self._pools: dict[tuple[int, bool], Pool] = {}
        self._used: dict[int, MemoryBlock] = {}
        self._next_address = 0

    def malloc(self, identity: int, size: int, stream: int = 0) -> None:
        """Allocate `size` bytes under a name.

        Raises:
            OutOfMemoryError: there is no room, also after all that is cached was given back.
        """
        if size == 0:
            return
        rounded = self.rounded(size)
        pool = self._pool(stream, rounded <= SMALL)
        block = self._cached(pool, rounded) or self._new(pool, rounded)
        if block is None:
            self.retries += 1
            self.empty_cache()
            block = self._new(pool, rounded)
        if block is None:
            raise OutOfMemoryError(size)
        self._split(block, rounded)
        self._used[identity] = block
        self.allocated += block.size

    def free(self, identity: int) -> None:
        """Free what was allocated under a name; nothing where nothing was."""
        block = self._used.pop(identity, None)
        if block is None:
            return
        self.allocated -= block.size
        self._give_back(block)

    def rounded(self, size: int) -> int:
        """The size of the block for an allocation (``round_size``)."""
        if size < MIN_BLOCK:
            return MIN_BLOCK
        divisions = self.options.divisions(size)
        if divisions > 1 and size > MIN_BLOCK * divisions:
            power = 1 << (size.bit_length() - 1)
            return _multiple(size, max(power // divisions, MIN_BLOCK))
        return _multiple(size, MIN_BLOCK)

    def used(self) -> list[tuple[int, int]]:
        """Addresses of what is allocated: first byte, and the one behind the last."""
        return sorted((block.address, block.address + block.size) for block in self._used.values())

    # -- Where a block comes from --------------------------------------------------------------

    def _pool(self, stream: int, small: bool) -> Pool:
        return self._pools.setdefault((stream, small), Pool(small))

    def _cached(self, pool: Pool, size: int) -> MemoryBlock | None:
        """The smallest free block that is large enough (``get_free_block``)."""
        place = bisect_left(pool.blocks, (size, -1))
        if place == len(pool.blocks):
            return None
        block = pool.blocks[place][2]
        limit = self.options.max_split_size
        if limit is not None:
            unsplit = block.size >= limit
            if unsplit and (size < limit or block.size >= size + ROUND_UNSPLIT):
                return None
        del pool.blocks[place]
        block.free = False
        return block

    def _new(self, pool: Pool, size: int) -> MemoryBlock | None:
        """A block of a new segment, or of one that grows; None where the GPU is full."""
        if self.options.expandable_segments:
            return self._grown(pool, size)
        segment = _segment(size)
        if not self._reserve(segment):
            return None
        return MemoryBlock(segment, self._address(segment), pool)

    def _reserve(self, size: int) -> bool:
        if self.capacity is not None and self.reserved + size > self.capacity:
            return False
        self.reserved += size
        return True

    def _address(self, size: int) -> int:
        address = self._next_address
        self._next_address += size
        return address

    def _split(self, block: MemoryBlock, size: int) -> None:
        rest = block.size - size
        if block.pool.small or self.options.expandable_segments:
            splits = rest >= MIN_BLOCK
        else:
            limit = self.options.max_split_size
            splits = rest > SMALL and (limit is None or size < limit)
        if splits:
            self._cut(block, size).free = True
            block.pool.add(_after(block))

    @staticmethod
    def _cut(block: MemoryBlock, size: int) -> MemoryBlock:
        """The block keeps its first `size` bytes; the block of the others."""
        rest = MemoryBlock(block.size - size, block.address + size, block.pool, mapped=block.mapped)
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size
        return rest

    def _give_back(self, block: MemoryBlock) -> None:
        """To its pool, merged with its free neighbours."""
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free and neighbour.mapped:
                block.pool.remove(neighbour)
                _merge(block, neighbour)
        block.free = True
        block.pool.add(block)

    def empty_cache(self) -> None:
        """Give back what is wholly free: segments, or pages of one that grows."""
        for pool in self._pools.values():
            for _, _, block in list(pool.blocks):
                if self.options.expandable_segments:
                    self._unmap(block)
                elif block.whole:
                    pool.remove(block)
                    self.reserved -= block.size

    # -- Segments that grow --------------------------------------------------------------------

    def _grown(self, pool: Pool, size: int) -> MemoryBlock | None:
        """The first free stretch of the pool's segment that has room, mapped as far as it lacks."""
        if pool.growing is None:
            pool.growing = MemoryBlock(
                ADDRESS_SPACE, self._address(ADDRESS_SPACE), pool, free=True, mapped=False
            )
        block = pool.growing
        while not (block.free and _room(block) >= size):
            block = _after(block)
        while not (block.mapped and block.size >= size):
            gap, missing = block, size
            if block.mapped:
                gap, missing = _after(block), size - block.size
            if not self._map(gap, missing):
                return None
            block = gap
        pool.remove(block)
        block.free = False
        return block

    def _map(self, gap: MemoryBlock, size: int) -> bool:
        """Give memory to the first pages of a gap, which takes its mapped neighbours in."""
        size = min(_multiple(size, gap.pool.page), gap.size)
        if not self._reserve(size):
            return False
        if size < gap.size:
            self._cut(gap, size).free = True
        gap.mapped = True
        self._give_back(gap)
        return True

    def _unmap(self, block: MemoryBlock) -> None:
        """Take the memory of the whole pages in a free block."""
        page, start = block.pool.page, block.address
        first, last = _multiple(start, page), (start + block.size) // page * page
        if last <= first:
            return
        block.pool.remove(block)
        if first > start:
            middle = self._cut(block, first - start)
            middle.free = True
            block.pool.add(block)
            block = middle
        if last < block.address + block.size:
            rest = self._cut(block, last - first)
            rest.free = True
            block.pool.add(rest)
        block.mapped = False
        self.reserved -= block.size
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free and not neighbour.mapped:
                _merge(block, neighbour)


def _multiple(size: int, step: int) -> int:
    return -(-size // step) * step


def _segment(size: int) -> int:
    """The size of a new segment for a block (``get_allocation_size``)."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < MIN_LARGE else _multiple(size, ROUND_LARGE)


def _after(block: MemoryBlock) -> MemoryBlock:
    assert block.after is not None
    return block.after


def _room(block: MemoryBlock) -> int:
    """Bytes of a free block with the gap behind it, or of a gap with what is free behind it."""
    size, following = block.size, block.after
    while following is not None and following.free:
        size += following.size
        following = following.after
    return size


def _merge(block: MemoryBlock, neighbour: MemoryBlock) -> None:
    """The block takes its neighbour in."""
    if neighbour is block.before:
        block.address, block.before = neighbour.address, neighbour.before
        if neighbour.before is not None:
            neighbour.before.after = block
        elif block.pool.growing is neighbour:
            block.pool.growing = block
    else:
        block.after = neighbour.after
        if neighbour.after is not None:
            neighbour.after.before = block
    block.size += neighbour.size
