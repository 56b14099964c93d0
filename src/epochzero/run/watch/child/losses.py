"""The losses of backward passes, held until there are enough for a record."""

from __future__ import annotations

from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.statistics import Look, number_in

EVERY_LOSSES = 50
Loss = float | torch.Tensor
"""Of a GPU a tensor of its own that was not read yet: reading makes the GPU wait."""


class Losses:
    """Keeps the number of each loss, and keeps no tensor of the job alive."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._pending: list[tuple[int, str, Loss]] = []
        self._unscaled: ByIdentity[Loss] = ByIdentity()

    @property
    def are_many(self) -> bool:
        """Whether it is time to record them."""
        return len(self._pending) >= EVERY_LOSSES

    def scaled(self, scaled: torch.Tensor, loss: torch.Tensor) -> None:
        """A loss was scaled for its backward pass; what counts is the loss."""
        self._unscaled.set(scaled, _mean(loss))

    def is_scaled(self, loss: torch.Tensor) -> bool:
        """Whether a loss was scaled for its backward pass."""
        return self._unscaled.get(loss) is not None

    def add(self, iteration: int, line: str, loss: torch.Tensor, *, read: bool) -> Loss:
        """Holds the loss of a backward pass at a line.

        Args:
            iteration: its number.
            line: of the call.
            loss: what the pass begins at.
            read: also where that makes a GPU wait.
        """
        unscaled = self._unscaled.get(loss)
        value = _mean(loss) if unscaled is None else unscaled
        if read and isinstance(value, torch.Tensor):
            value = number_in(value)
        self._pending.append((iteration, line, value))
        return value

    def emit(self) -> None:
        """Records those that are pending."""
        losses, self._pending = self._pending, []
        look, read = Look(), []
        for _, _, loss in losses:
            of: dict[str, Any] = {}
            look.add(of, ("loss",), loss.reshape(1) if isinstance(loss, torch.Tensor) else [loss])
            read.append(of)
        look.read()
        if losses:
            numbered = zip(losses, read, strict=True)
            records = [[iteration, line, of["loss"]] for (iteration, line, _), of in numbered]
            self._records.emit("losses", losses=records)


def _mean(loss: torch.Tensor) -> Loss:
    """The number of a loss, where reading it waits for no GPU."""
    # A loss of a class of its own may compute with other functions, which are not ours to call.
    with torch._C.DisableTorchFunction():
        loss = loss.detach()
        is_on_cpu = loss.device.type == "cpu"
        mean = loss if is_on_cpu and loss.dim() == 0 else loss.float().mean()
        return number_in(mean) if is_on_cpu else mean
