"""Measures to save memory, cheapest first."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How a step is computed.

    Attributes:
        parts: number of micro-batches per batch; 1 leaves it whole.
        checkpoint: whether activations are recomputed in backward.
        offload: whether saved tensors and optimizer states are moved to CPU memory while they are not needed.
    """

    parts: int = 1
    checkpoint: bool = False
    offload: bool = False

    def next(self, examples: int, *, can_checkpoint: bool) -> StepPlan | None:
        """Return the plan to try when this one runs out of memory; None if there is none.

        Args:
            examples: number of examples in the batch; 1 if it must not be split.
            can_checkpoint: whether the model has blocks to recompute.
        """
        if self.parts < examples:
            return replace(self, parts=min(2 * self.parts, examples))
        if can_checkpoint and not self.checkpoint and not self.offload:
            return replace(self, checkpoint=True)
        if not self.offload:
            return replace(self, offload=True)
        if self.checkpoint:
            # A recomputed block holds all its activations at once, which offloading alone does not.
            return replace(self, checkpoint=False)
        return None

    def __str__(self) -> str:
        done = [f"{self.parts} micro-batches"] * (self.parts > 1)
        done += ["activation checkpointing"] * self.checkpoint + ["offload"] * self.offload
        return ", ".join(done) or "the whole batch"
