"""A batch of a data loader that is drawn second, because it differs from the others.

The memory of a job is that of its largest batch: second, since from then on the optimizer's states take their
room too. A shortened loop would never draw it, nor one with a sample that cannot be read. Samples are read for a
moment before the first batch is drawn. Of a trainer that draws a few batches only, the last one, which may be
smaller, would never be drawn.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping
from typing import Any, Optional

LONGEST_S = 1.0
MOST_BATCHES = 100_000


def largest_second(batches: Any, dataset: Any) -> Optional[tuple[int, int]]:
    """Let an iterator of a data loader of torch draw the largest of its batches second.

    A batch is as large as its largest sample times their number, as padding makes it; one with a sample that
    cannot be read is the largest.

    Args:
        batches: the iterator, before it has drawn any.
        dataset: that it draws from, by numbers.

    Returns:
        The number of that batch, from 0, and how many were measured; None where all are alike.
    """
    indices = batches._sampler_iter
    drawn: list[Any] = []
    sizes: list[int] = []
    until = time.monotonic() + LONGEST_S
    seen: set[int] = set()
    for batch in indices:
        drawn.append(batch)
        try:
            samples = [_size(dataset[index]) for index in batch]
        except Exception:  # the job's own loop meets it
            sizes.append(sys.maxsize)
            seen.update((0, sys.maxsize))
            break
        sizes.append(max(samples, default=0) * len(samples))
        seen.update(samples)
        if time.monotonic() > until:
            break
    largest = sizes.index(max(sizes)) if len(seen) > 1 else None
    if largest is not None and len(drawn) > 1:
        drawn.insert(1, drawn.pop(largest))
    batches._sampler_iter = itertools.chain(drawn, indices)
    return None if largest is None else (largest, len(sizes))


def last_second(batches: Any) -> None:
    """Let an iterator of a data loader of torch draw the last of its batches second."""
    drawn = list(itertools.islice(batches._sampler_iter, MOST_BATCHES))
    if len(drawn) > 2:
        drawn.insert(1, drawn.pop())
    batches._sampler_iter = itertools.chain(drawn, batches._sampler_iter)


def _size(sample: Any) -> int:
    """How many numbers, or letters, a sample has in all its parts."""
    if callable(getattr(sample, "numel", None)):
        return int(sample.numel())
    if isinstance(sample, str):
        return len(sample)
    if isinstance(sample, Mapping):
        return sum(map(_size, sample.values()))
    if isinstance(sample, (list, tuple)):
        return sum(map(_size, sample))
    return int(getattr(sample, "size", 1)) if hasattr(sample, "dtype") else 1
