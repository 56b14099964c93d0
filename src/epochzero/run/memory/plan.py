"""What is done to save memory, from the cheapest on."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How a step is computed.

    Attributes:
        parts: micro-batches of a batch; 1 leaves it whole.
        checkpoint: whether activations are computed again in backward.
        offload: whether saved tensors and optimizer states wait in the memory of the CPU.
    """

    parts: int = 1
    checkpoint: bool = False
    offload: bool = False

    def next(self, examples: int, *, can_checkpoint: bool) -> StepPlan | None:
        """The plan to try when this one runs out of memory; None when there is none.

        Args:
            examples: of the batch, 1 where it must not be split.
            can_checkpoint: whether the model has blocks to compute again.
        """
        if self.parts < examples:
            return replace(self, parts=min(2 * self.parts, examples))
        if can_checkpoint and not self.checkpoint and not self.offload:
            return replace(self, checkpoint=True)
        if not self.offload:
            return replace(self, offload=True)
        if self.checkpoint:
            # A block that is computed again keeps all of itself at a time, which offload alone does not.
            return replace(self, checkpoint=False)
        return None

    def __str__(self) -> str:
        done = [f"{self.parts} micro-batches"] * (self.parts > 1)
        done += ["activation checkpointing"] * self.checkpoint + ["offload"] * self.offload
        return ", ".join(done) or "the whole batch"
