"""Traces of the same job with storages of other sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epochzero.check.dryrun.memory.trace import Alloc, Event, Mark, Trace


def resized(trace: Trace, size: Callable[[Alloc, str], int]) -> Trace:
    """A trace whose storages have other sizes.

    Args:
        trace: as it is.
        size: of an allocation and its kind, the new size in bytes; the kind is ``transient`` for what is
            temporary inside the optimizer's step.
    """
    events: list[Event] = []
    inside = False
    for event in trace.events:
        if isinstance(event, Mark):
            inside = event.name == "optimizer" or (inside and not event.name.startswith("step "))
        if isinstance(event, Alloc):
            kind = trace.kind(event.storage)
            new = size(event, "transient" if inside and kind == "temporary" else kind)
            events.append(Alloc(event.storage, new, event.site))
        else:
            events.append(event)
    return replace(trace, events=tuple(events))


def first_gradients(trace: Trace) -> frozenset[int]:
    """Gradients of the first step."""
    found: set[int] = set()
    for event in trace.events:
        if isinstance(event, Mark) and event.name == "optimizer":
            break
        if isinstance(event, Alloc) and trace.kind(event.storage) == "gradient":
            found.add(event.storage)
    return frozenset(found)


def fused(trace: Trace) -> Trace:
    """A job with ``torch.compile`` takes between what is traced and what its compiler surely keeps.

    What is no result of a product, a convolution or attention may be fused into the operation that needs
    it, or recomputed in backward (``torch/_functorch/partitioners.py``: ``compute_intensive_ops``).
    """

    def size(alloc: Alloc, kind: str) -> int:
        lasting = kind not in ("activation", "temporary") or alloc.storage in trace.computed
        return alloc.size if lasting else 0

    assumptions = (
        "torch.compile is skipped: the upper end is the memory of the program without compilation, the lower end that of its products,"
        " convolutions and attention alone"
    )
    return replace(
        trace, least=resized(trace.least or trace, size), assumed=(*trace.assumed, assumptions)
    )
