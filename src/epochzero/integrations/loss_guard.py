"""Skipping a batch whose loss is not finite, on all ranks together: ``epochzero.guard``.

A rank that skips a step alone leaves the others waiting in the gradients' all-reduce, so the ranks
have to agree first.
"""

from __future__ import annotations

import logging

import torch
import torch.distributed as dist
from torch import Tensor

_log = logging.getLogger("epochzero")
_skipped = 0
"""Batches in a row; the ranks agree, so that each counts the same."""


def guard(loss: Tensor, *, group: dist.ProcessGroup | None = None, most_in_a_row: int = 20) -> bool:
    """Whether the loss of this batch is finite on all ranks, so that they take the step.

    Call it on every rank of the group for every batch: it is a collective of one number, and waits
    for the loss. Without an initialized process group it looks at this process alone.

    >>> loss = model(batch)                # doctest: +SKIP
    >>> if epochzero.guard(loss):          # doctest: +SKIP
    ...     loss.backward()
    ...     optimizer.step()
    ... optimizer.zero_grad()

    Args:
        loss: of this rank's batch; of any shape.
        group: the ranks that share gradients; by default all.
        most_in_a_row: batches that may be skipped one after the other. More mean that the weights
            are no longer finite, which no further batch mends.

    Returns:
        False, on all ranks, if a rank's loss is NaN or infinite.

    Raises:
        FloatingPointError: on all ranks, if more batches in a row would be skipped.
    """
    global _skipped
    rank = _first_rank_with_infinite(loss, group)
    if rank is None:
        _skipped = 0
        return True
    _skipped += 1
    if _skipped > most_in_a_row:
        raise FloatingPointError(
            f"the loss was not finite in {_skipped} batches in a row (now on rank {rank}): the weights are "
            "no longer finite, or each batch is wrong. Lower the learning rate, clip gradients, or "
            "check the data; then resume from a checkpoint before the first skipped batch."
        )
    _log.warning("batch skipped on all ranks: the loss of rank %d is not finite", rank)
    return False


def _first_rank_with_infinite(loss: Tensor, group: dist.ProcessGroup | None) -> int | None:
    """The lowest rank of the group whose loss is not finite; None if there is none."""
    finite = torch.isfinite(loss.detach()).all()
    if not (dist.is_available() and dist.is_initialized()):
        return None if finite else 0
    size = dist.get_world_size(group)
    # On the loss's device, since NCCL reduces only what is on GPUs.
    lowest = torch.where(finite, size, dist.get_rank(group)).to(torch.int64)
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN, group=group)
    rank = int(lowest.item())
    return None if rank == size else rank
