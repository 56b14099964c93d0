"""A training step that is repeated in another way when memory runs out, with the same gradients."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from epochzero.errors import InputError
from epochzero.run.memory.batches import examples_of, split
from epochzero.run.memory.checkpointing import checkpointed, repeated_blocks
from epochzero.run.memory.coupling import CoupledBatch, Weight, batch_norms, check_splitting
from epochzero.run.memory.offload import OptimizerStates, offload
from epochzero.run.memory.plan import StepPlan
from epochzero.run.memory.plan_store import key_of, recall, remember
from epochzero.run.memory.ranks import Ranks
from epochzero.run.memory.saved_state import Before, free_memory, is_out_of_memory

_log = logging.getLogger("epochzero")
_SMALLEST = 1 << 16
"""Smallest size in bytes of a tensor that is offloaded; offloading is the last measure."""


class OomSafeStep:
    """The step; see `epochzero.memory.fit`.

    Attributes:
        plan: how steps are currently computed.
        refused: measures that were not possible, each with its reason.
    """

    def __init__(
        self,
        step: Callable[[Any], Tensor],
        model: nn.Module,
        optimizer: Optimizer,
        *,
        weight: Weight | None,
        split: Callable[[Any, int], Sequence[Any]] | None,
        backward: Callable[[Tensor], object],
        blocks: Iterable[nn.Module] | None,
        allow_batch_norm: bool,
        file: Path | None,
        on_event: Callable[[str], object],
    ) -> None:
        """Create the step; ``file`` stores plans, ``on_event`` is called with a line when the plan changes.

        Raises:
            InputError: see `epochzero.memory.fit`.
        """
        _check_input(step, optimizer)
        if split is not None and weight is None:
            raise InputError("split= requires weight=: the share of a part in the batch's loss")
        self.plan = StepPlan()
        self.refused: list[str] = []
        self._step = step
        self._model = model
        self._weight = weight
        self._is_mean = True
        self._split = split
        self._backward = backward
        self._blocks = repeated_blocks(model) if blocks is None else list(blocks)
        self._allow_batch_norm = allow_batch_norm
        self._file = file
        self._on_event = on_event
        self._key = ""
        self._checked: bool | None = None
        self._within = False
        self._ranks = Ranks(model)
        self._states = OptimizerStates(optimizer, _SMALLEST)
        optimizer.register_step_pre_hook(self._forbid)

    def __call__(self, batch: Any) -> Tensor:
        """Compute loss and gradients of a batch in a way that fits into memory.

        Returns:
            The loss of the whole batch, without a graph.

        Raises:
            torch.OutOfMemoryError: no measure helped; the notes of the exception list what was tried.
            InputError: the step does something that it must not do, see `epochzero.memory.fit`.
        """
        before = Before(self._model)
        with self._ranks.step():
            first = not self._key
            if first:
                self._begin(batch)
            began = self.plan
            loss = self._tried(batch, before, first)
        if self.plan != began:
            self._report()
        return loss

    def _begin(self, batch: Any) -> None:
        """Start with the plan of the last run of the same job, the same on all ranks."""
        self._key = key_of(self._model, batch)
        kept = recall(self._file, self._key) if self._file is not None else StepPlan()
        parts, checkpoint, moved = self._ranks.largest(kept.parts, kept.checkpoint, kept.offload)
        plan = StepPlan(parts, bool(checkpoint) and bool(self._blocks), bool(moved))
        if plan.parts > 1 and not self._may_split(batch):
            plan = StepPlan(1, plan.checkpoint, plan.offload)
        if plan != StepPlan():
            self._use(plan)
            _log.info("memory: starting with the plan of the last run: %s", plan)

    def _tried(self, batch: Any, before: Before, first: bool) -> Tensor:
        while True:
            error: BaseException | None = None
            loss = None
            try:
                loss = self._try(batch, before if first else None)
            except Exception as raised:
                if not is_out_of_memory(raised):
                    raise
                error = raised
            if not self._ranks.largest(error is not None)[0]:
                assert loss is not None
                return loss
            del loss
            free_memory(error)
            before.restore()
            if (plan := self._next(batch)) is None:
                raise self._explained(error)
            _log.warning("memory: out of memory with %s; trying %s", self.plan, plan)
            self._use(plan)

    def _try(self, batch: Any, before: Before | None) -> Tensor:
        """Compute all parts. ``before`` is used to detect whether the step calls backward itself."""
        parts = self._parts(batch)
        weights = self._weights(parts)
        total: Tensor | float = 0.0
        with self._saving():
            for part, weight in zip(parts, weights, strict=True):
                loss = self._loss(part)
                if before is not None and before.gradients_changed():
                    raise InputError(
                        "the step changes gradients: it must only return the loss; backward() is called for it"
                    )
                before = None
                loss = loss if weight == 1.0 else loss * weight
                self._backward(loss)
                total = total + loss.detach()
                del loss
        assert isinstance(total, Tensor)
        return total

    def _loss(self, part: Any) -> Tensor:
        self._within = True
        try:
            loss = self._step(part)
        finally:
            self._within = False
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise InputError(
                "the step must return its loss, a tensor with one number and a graph; it returned "
                f"{_described(loss)}. backward() is called for it; call optimizer.step() afterwards"
            )
        return loss

    def _parts(self, batch: Any) -> Sequence[Any]:
        if self.plan.parts == 1:
            return [batch]
        return self._split(batch, self.plan.parts) if self._split else split(batch, self.plan.parts)

    def _weights(self, parts: Sequence[Any]) -> list[float]:
        if len(parts) == 1 or not self._is_mean:
            return [1.0] * len(parts)
        assert self._weight is not None
        weights = [float(self._weight(part)) for part in parts]
        # The mean of no targets is NaN, as it would be for the whole batch.
        return [weight / sum(weights) if sum(weights) else float("nan") for weight in weights]

    @contextmanager
    def _saving(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self.plan.offload:
                stack.enter_context(offload(smallest=_SMALLEST, ahead=1))
            if self.plan.checkpoint:
                stack.enter_context(checkpointed(self._blocks))
            yield

    def _next(self, batch: Any) -> StepPlan | None:
        """Return the next plan to try; the same on all ranks."""
        examples = 1
        if self._may_split(batch):
            examples = self._ranks.largest(self._most_parts(batch))[0]
        return self.plan.next(examples, can_checkpoint=bool(self._blocks))

    def _most_parts(self, batch: Any) -> int:
        return 2 * self.plan.parts if self._split and self.plan.parts < 1024 else examples_of(batch)

    def _may_split(self, batch: Any) -> bool:
        """Whether splitting changes nothing, on all ranks; repeated until there is enough memory to find out."""
        if self._checked is None:
            reason = self._reason_against_splitting(batch)
            refused, unknown = self._ranks.largest(bool(reason), reason is None)
            if refused:
                reason = reason or "another rank must not split its batch"
                self.refused.append(f"micro-batches: {reason}")
                _log.warning("memory: the batch cannot be split: %s", reason)
            if refused or not unknown:
                self._checked = not refused
        return bool(self._checked)

    def _reason_against_splitting(self, batch: Any) -> str | None:
        """Return why the batch must not be split; empty if it may, None if there is too little memory to find out."""
        if (norms := batch_norms(self._model)) and not self._allow_batch_norm:
            return (
                f"the statistics of batch norm in training mode ({len(norms)} layers, the first is {norms[0]}) would "
                "be computed from a part of the batch; allow_batch_norm=True accepts that"
            )
        if self._split is not None:
            return ""
        before = Before(self._model)
        try:
            if examples_of(batch) == 1:
                return "it has only one example"
            with self._saving():
                found = check_splitting(self._loss, self._model, batch, self._weight)
            self._weight, self._is_mean = found
        except (CoupledBatch, InputError) as refused:
            return str(refused)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            free_memory(error)
            return None
        finally:
            before.restore()
        return ""

    def _use(self, plan: StepPlan) -> None:
        if plan.offload:
            self._states.begin()
        self.plan = plan

    def _report(self) -> None:
        text = f"recovered from out-of-memory with {self.plan}"
        _log.warning("memory: %s", text)
        self._on_event(text)
        if self._file is not None and self._ranks.first:
            remember(self._file, self._key, self.plan)

    def _explained(self, error: BaseException | None) -> BaseException:
        """Return the error that ends the job, with notes about what was tried."""
        if error is None:
            error = torch.cuda.OutOfMemoryError("out of memory on another rank")
        error.add_note(f"epochzero.memory.fit: out of memory even with {self.plan}.")
        if not self._blocks:
            error.add_note(
                "No activation checkpointing: the model has no repeated blocks; pass blocks=."
            )
        if self._checked is None:
            error.add_note("No micro-batches: not even a batch of three examples fits.")
        for refused in self.refused:
            error.add_note(f"No {refused}.")
        error.add_note(
            "Other options: shorter sequences or smaller images, mixed precision, an optimizer with smaller "
            "states, weights sharded over more GPUs (FSDP)."
        )
        return error

    def _forbid(self, *_: Any) -> None:
        """Prevent an optimizer step during a try: it could not be undone."""
        if self._within:
            raise InputError(
                "the step calls optimizer.step(): it must only return its loss; call "
                "optimizer.step() after it"
            )


def _check_input(step: Any, optimizer: Any) -> None:
    if isinstance(optimizer, LBFGS):
        raise InputError(
            "LBFGS evaluates its closure several times per step, which cannot be repeated; use an optimizer "
            "without a closure"
        )
    if not callable(step):
        raise InputError(f"the step must be a function of a batch, not {_described(step)}")
    try:
        signature = inspect.signature(step)
    except ValueError:
        return  # of compiled code: nobody knows
    try:
        signature.bind(None)
    except TypeError as error:
        raise InputError(f"the step must be a function of one batch: {error}") from None


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        graph = "a graph" if value.requires_grad else "no graph"
        return f"a tensor of shape {tuple(value.shape)} with {graph}"
    return f"a {type(value).__name__}"
