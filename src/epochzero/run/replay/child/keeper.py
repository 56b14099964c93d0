"""Stores the last snapshot and the batches since, within limits of time and memory.

A snapshot is an in-memory copy of weights, buffers, optimizers, schedulers and scalers, and the random states. It
is made between two steps, when a loader is asked for a batch, as often as a fraction of the job's time allows; each
one overwrites the memory of the previous one. The batches since are copied as well, up to the size of a checkpoint
and another fraction of the time. Beyond that, batches that can be sampled again are stored by their indices; if a
batch has no indices, nothing is stored until the next snapshot. Nothing is written to disk before the job fails,
except the random states of its start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from epochzero.run.replay.child.course import Course
from epochzero.run.replay.child.sources import random_states
from epochzero.run.replay.child.structure import encode
from epochzero.run.replay.child.tensors import is_kept

SNAPSHOTS = 0.01
"""Largest fraction of the job's time for snapshots."""
SHORT_S = 0.5
"""Seconds of a training that a replay can repeat as well: steps of a few milliseconds need no snapshot in between."""
BATCHES = 0.005
"""Largest fraction of the job's time for the batches since a snapshot."""
FREE_S = 0.02
"""Additional seconds for batches, so that a job that has just started stores all of them."""
LEAST_ROOM = 1 << 20
"""Bytes of batches that are stored even if a checkpoint is smaller."""
_COPIED_A_SECOND = 1e9
_INDEX_BYTES = 36
"""Bytes of a stored index: a Python integer and the pointer to it."""
_NOT_KEPT = {"kind": "left_out", "type": "batch"}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Keeper:
    """Records the events of a training.

    Attributes:
        snapshot: the last one, as JSON data with tensors by name, without its random states; None if there is none.
        complete: whether every event since the snapshot is stored.
        taken: number of snapshots made.
        cost_s: seconds that the last snapshot took, or that the first is expected to take.
    """

    def __init__(self, course: Course, write: Callable[[], object]) -> None:
        """Create an empty record."""
        self.snapshot: dict[str, Any] | None = None
        self._events: list[dict[str, Any]] = []
        self.complete = True
        self._course = course
        self._write = write
        self._frozen = False
        self._states: dict[str, torch.Tensor] = {}
        self._batches: dict[str, torch.Tensor] = {}
        self._spare: dict[str, torch.Tensor] = {}
        self._held = self._listed = 0
        self._steps = 0
        self._taken_s = 0.0
        self.taken = 0
        self._on_batches_s = 0.0
        self.cost_s = 0.0
        self._room = LEAST_ROOM
        self._indices: Any = None

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors that the snapshot and the events refer to."""
        return {**(self._states if self.snapshot is not None else {}), **self._batches}

    def events(self) -> list[dict[str, Any]]:
        """Batches delivered since the snapshot, or since the start."""
        return [
            {**event, "indices": encode(event.get("indices"), _nothing)} for event in self._events
        ]

    def size(self) -> int:
        """Bytes of a checkpoint: all weights, buffers and states."""
        found = [
            t for model in self._course.models for t in (*model.parameters(), *model.buffers())
        ]
        for optimizer in self._course.optimizers:
            held = (value for state in optimizer.state.values() for value in state.values())
            found += [value for value in held if isinstance(value, torch.Tensor)]
        return sum(tensor.numel() * tensor.element_size() for tensor in found)

    # Events ---------------------------------------------------------------------------------------

    def delivers(self, loader: int, iterator: Any, deliver: Callable[[], Any]) -> Any:
        """See `Follower`: store a copy of the batch."""
        if self._is_due():
            self._safely(self._between, iterator)
        self._indices = None
        try:
            batch = deliver()
        except StopIteration:
            self._safely(self._add, {"loader": loader, "kind": "end"})
            raise
        except BaseException:
            self._safely(self._add_failed, loader)
            raise
        if self.complete:
            self._safely(self._add_batch, loader, batch)
        return batch

    def chooses(self, loader: int, choose: Callable[[], Any]) -> Any:
        """See `Follower`: store the indices."""
        self._indices = choose()
        return self._indices

    def calls(self, model: Any) -> None:
        """See `Follower`."""

    def not_finite(self) -> None:
        """See `Follower`: write what led to the loss, and do not replace it."""
        self._frozen = True
        self._write()

    def stepped(self) -> None:
        """See `Follower`: write the random states of the start at the first step."""
        if self._course.steps == 1:
            self._write()

    # Storing --------------------------------------------------------------------------------------

    def _safely(self, method: Callable[..., None], *args: Any) -> None:
        """Call a method; its failure must not fail the job."""
        if self._frozen:
            return
        began = time.monotonic()
        try:
            with torch._C.DisableTorchFunction():
                method(*args)
        except Exception as error:
            self._course.troubles.append(f"{type(error).__name__}: {error}"[:500])
            self._frozen = len(self._course.troubles) > 8
            self._drop()
        finally:
            self._course.spent_s += time.monotonic() - began

    def _between(self, iterator: Any) -> None:
        """Between two steps, before a loader's next batch: make a snapshot if one is due."""
        course = self._course
        if not any(True for _ in course.models):
            return
        if not self.cost_s:
            self._room = max(LEAST_ROOM, self.size())
            self.cost_s = self._room / _COPIED_A_SECOND
            if not self._is_due():
                return
        # A non-finite loss must be noticed before what led to it is overwritten.
        course.read()
        if not self._frozen:
            self._take(iterator._num_yielded > 0)

    def _is_due(self) -> bool:
        """Whether the job has run long enough since the last snapshot to pay for another one, and long enough to need it."""
        since_s = self._elapsed() - self._taken_s
        if self._course.steps == self._steps or SNAPSHOTS * since_s < self.cost_s:
            return False
        # Without indices, batches that find no room would leave nothing to replay.
        is_full = self._indices is None and self._held > self._room // 2
        return since_s >= SHORT_S or is_full or not (self.taken and self.complete)

    def _elapsed(self) -> float:
        return time.monotonic() - self._course.began

    def _take(self, begun: bool) -> None:
        began = self._elapsed()
        course, self._steps = self._course, self._course.steps
        self._drop()
        names = iter(range(1 << 30))
        before, self._states = self._states, {}

        def put(tensor: torch.Tensor) -> str | None:
            if not is_kept(tensor) or type(tensor) not in _PLAIN:
                return None
            name = f"state.{next(names)}"
            self._states[name] = _copied(tensor, before.get(name))
            return name

        self.snapshot = {
            "position": course.position(),
            "begun": begun,
            "random": random_states(),
            "states": encode(
                {
                    "models": [_of_model(model) for model in course.models],
                    "optimizers": [_of_optimizer(optimizer) for optimizer in course.optimizers],
                    "schedulers": [scheduler.state_dict() for scheduler in course.schedulers],
                    "scalers": [scaler.state_dict() for scaler in course.scalers],
                },
                put,
            ),
        }
        self.complete = True
        self.taken += 1
        self._taken_s = self._elapsed()
        self.cost_s = self._taken_s - began

    def _drop(self) -> None:
        """Discard all events; nothing is stored until the next snapshot."""
        self.snapshot, self.complete = None, False
        # Later copies reuse the same memory.
        self._spare = self._batches or self._spare
        self._events, self._batches = [], {}
        self._held = self._listed = 0

    def _add_batch(self, loader: int, batch: Any) -> None:
        """Store a copy of the batch, or, if that costs too much, the indices from which it can be sampled again."""
        copies = self._may_copy()
        if self._indices is None and not copies:
            self._drop()
            return
        began = self._elapsed()
        self._add(
            {
                "loader": loader,
                "kind": "batch",
                "indices": self._of_indices(),
                "batch": encode(batch, self._put) if copies else _NOT_KEPT,
            }
        )
        self._on_batches_s += self._elapsed() - began

    def _may_copy(self) -> bool:
        """Whether batches are within their limits of time and memory."""
        may_s = FREE_S + BATCHES * self._elapsed()
        return self._held <= self._room and self._on_batches_s <= may_s

    def _add_failed(self, loader: int) -> None:
        self._add({"loader": loader, "kind": "failed", "indices": self._of_indices()})

    def _of_indices(self) -> Any:
        """Return the indices unencoded: encoding them only when written saves time in every step."""
        if type(self._indices) is not list:
            return self._indices
        self._listed += _INDEX_BYTES * len(self._indices)
        return self._indices.copy()

    def _add(self, event: dict[str, Any]) -> None:
        if self.complete:
            self._events.append(event)
            if self._listed > LEAST_ROOM:
                self._drop()

    def _put(self, tensor: torch.Tensor) -> str | None:
        if not self.complete or not is_kept(tensor) or type(tensor) not in _PLAIN:
            return None
        name = f"batch.{len(self._batches)}"
        self._batches[name] = _copied(tensor, self._spare.get(name))
        self._held += tensor.numel() * tensor.element_size()
        return name


def _nothing(_: torch.Tensor) -> None:
    """Store no tensor."""


def _copied(tensor: torch.Tensor, memory: torch.Tensor | None) -> torch.Tensor:
    """Copy a tensor to the CPU, into the given memory if it fits."""
    if memory is None or memory.shape != tensor.shape or memory.dtype != tensor.dtype:
        # A tensor made in inference mode cannot be written to outside of it.
        with torch.inference_mode(False):
            memory = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    return memory.copy_(tensor.detach())


def _of_model(model: Any) -> dict[str, Any]:
    """Weights and buffers of this process; `state_dict` may communicate with other ranks."""
    values = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {"values": values, "training": model.training}


def _of_optimizer(optimizer: Any) -> Any:
    """The optimizer's state, unless its class assembles it in its own way, which may communicate with other ranks."""
    plain = type(optimizer).state_dict is torch.optim.Optimizer.state_dict
    return optimizer.state_dict() if plain else None
