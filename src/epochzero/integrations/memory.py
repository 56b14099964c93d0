"""Training that survives out-of-memory: ``epochzero.memory``.

>>> step = epochzero.memory.fit(loss_of, model=model, optimizer=optimizer)  # doctest: +SKIP
>>> for batch in loader:  # doctest: +SKIP
...     optimizer.zero_grad()
...     loss = step(batch)
...     optimizer.step()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from epochzero.integrations.reporting import reporter
from epochzero.run.memory.limit import simulated_limit
from epochzero.run.memory.offload import offload
from epochzero.run.memory.oom_recovery import OomSafeStep
from epochzero.run.memory.plan import StepPlan
from epochzero.run.records.home import homes

__all__ = ["OomSafeStep", "StepPlan", "fit", "offload", "simulated_limit"]

FILE = "survive.json"
"""In EPOCHZERO_HOME: what jobs came to."""


def fit(
    step: Callable[[Any], Tensor],
    *,
    model: nn.Module,
    optimizer: Optimizer,
    weight: Callable[[Any], float] | None = None,
    split: Callable[[Any, int], Sequence[Any]] | None = None,
    backward: Callable[[Tensor], object] = Tensor.backward,
    blocks: Iterable[nn.Module] | None = None,
    allow_batch_norm: bool = False,
    remember: str | os.PathLike[str] | None = None,
) -> OomSafeStep:
    """Makes a step that computes loss and gradients in whatever way there is memory for.

    What it returns takes the place of ``loss = step(batch); loss.backward()``. When memory runs out, all
    that the failed try has changed is put back, and the batch is split into micro-batches; when that is
    not enough or would change the result, activations are computed again in backward; then what waits
    for backward, and the states of the optimizer, wait in the memory of the CPU. The gradients are those
    of the whole batch, but for rounding. It stays at what helped, and the next run begins with it.

    Args:
        step: a batch -> its loss, with a graph. It calls neither ``backward`` nor ``optimizer.step``.
        model: all that is trained; where DDP wraps it, the wrapped one, as the step calls it.
        optimizer: of its parameters.
        weight: a micro-batch -> over how much its loss is a mean; by default found out: examples, targets
            that cross entropy does not ignore, or a sum.
        split: a batch and a number -> as many micro-batches or fewer; by default along the first
            dimension, which all tensors share. Nothing is checked then.
        backward: of a loss, such as ``lambda loss: scaler.scale(loss).backward()``.
        blocks: modules whose activations are computed again; by default the model's repeated blocks.
        allow_batch_norm: whether batch norm may see statistics of micro-batches.
        remember: the file for what helped; by default one in EPOCHZERO_HOME.

    Raises:
        InputError: the step is no function of a batch, the optimizer calls closures (LBFGS), or the
            model exchanges something between ranks within forward and backward (FSDP).
    """
    return OomSafeStep(
        step,
        model,
        optimizer,
        weight=weight,
        split=split,
        backward=backward,
        blocks=blocks,
        allow_batch_norm=allow_batch_norm,
        file=homes(os.environ)[0] / FILE if remember is None else Path(remember),
        on_event=lambda text: reporter().report(memory=text),
    )
