"""Position of the job in its training: steps, backward passes, batches delivered by loaders.

A step is an optimizer step. At certain events a `Follower` is called, which records or replays.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch.utils.data import _DatasetKind

from epochzero.injected.identity import ByIdentity
from epochzero.run.replay.child.sources import random_states
from epochzero.run.watch.child.origin import origin
from epochzero.run.watch.child.places import place

MOST_LOSSES = 10_000
_UNREAD = 64
"""Number of GPU losses that may be unread: reading one makes the job wait for the GPU."""


class Follower(Protocol):
    """Records or replays the events of a training."""

    def delivers(self, loader: int, iterator: Any, deliver: Callable[[], Any]) -> Any:
        """A loader must deliver its next batch: return it, by calling ``deliver`` or otherwise."""
        ...

    def chooses(self, loader: int, choose: Callable[[], Any]) -> Any:
        """A loader without workers chooses the indices of its next batch."""
        ...

    def calls(self, model: Any) -> None:
        """A model is about to be called."""
        ...

    def not_finite(self) -> None:
        """A loss is not finite for the first time."""
        ...

    def stepped(self) -> None:
        """An optimizer has made a step."""
        ...


class Alive:
    """Weak references to objects, in the order of their creation."""

    def __init__(self) -> None:
        self._held: list[weakref.ref[Any]] = []

    def add(self, value: Any) -> None:
        """Add an object."""
        if not any(ref() is value for ref in self._held):
            self._held.append(weakref.ref(value))

    def __iter__(self) -> Iterator[Any]:
        return iter([value for ref in self._held if (value := ref()) is not None])


def _guarded(method: Any) -> Any:
    """Decorate a method: record its exceptions and let the job continue; ignore other threads and forks."""

    @functools.wraps(method)
    def called(self: Course, *args: Any) -> Any:
        if self.ended or self._busy or threading.get_ident() != self._thread:
            return None
        self._busy = True
        try:
            return method(self, *args)
        except Exception as error:
            self.troubles.append(f"{method.__name__}: {type(error).__name__}: {error}"[:500])
            self.ended = len(self.troubles) > 8
            return None
        finally:
            self._busy = False

    return called


class Course:
    """Receives the events of the job.

    Attributes:
        follower: records or replays.
        models, optimizers, schedulers, scalers: live objects; models in the order of their first call.
        steps, backwards: numbers of optimizer steps and backward passes so far.
        batches: number of batches delivered so far by all loaders.
        iterators: iterators of loaders that were started.
        nonfinite: the first loss that is not finite.
        inputs: arguments of the outermost call of a model, with weak references to tensors; its batch.
        batch: the last batch delivered.
        within: whether a model that no other model called is active.
        on_fork: called in a forked process with a function that returns the name of its worker.
        on_worker_failure: called in a worker with its name, the indices, and the random states before them.
        worker: returns the name of the worker that this process is; None before a fork.
        began: start on the monotonic clock.
        spent_s: seconds spent on recording and writing.
        troubles: errors that occurred while following.
        ended: whether following has stopped.
    """

    def __init__(self, *, looks_at_inputs: bool = False) -> None:
        """Create a course without events.

        Args:
            looks_at_inputs: whether to follow each call of a model, or only its first.
        """
        self.follower: Follower | None = None
        self.models, self.optimizers = Alive(), Alive()
        self.schedulers, self.scalers = Alive(), Alive()
        self.steps = self.backwards = self.batches = self.iterators = 0
        self.nonfinite: dict[str, Any] | None = None
        self.inputs: tuple[Any, Any] | None = None
        self.batch: Any = None
        self.on_fork: list[Callable[[Callable[[], str]], None]] = []
        self.on_worker_failure: Callable[[str, Any, Any], None] | None = None
        self.worker: Callable[[], str] | None = None
        self.began = time.monotonic()
        self.spent_s = 0.0
        self.troubles: list[str] = []
        self.ended = False
        self._thread = threading.get_ident()
        self._busy = False
        self.within = False
        self._looks_at_inputs = looks_at_inputs
        self._called: ByIdentity[bool] = ByIdentity()
        self._losses: deque[float] = deque(maxlen=MOST_LOSSES)
        self._unread: list[torch.Tensor] = []
        self._loaders: ByIdentity[int] = ByIdentity()
        self._loaders_of: ByIdentity[int] = ByIdentity()
        self._count = 0

    @property
    def trains(self) -> bool:
        """Whether anything was trained."""
        return bool(self.steps or self.backwards)

    def position(self) -> dict[str, int]:
        """Return the position of the job as JSON data."""
        return {"steps": self.steps, "backwards": self.backwards, "batches": self.batches}

    def jumps(self, position: dict[str, int]) -> None:
        """Continue the training from this position."""
        self.steps, self.backwards = position["steps"], position["backwards"]
        self.batches = position["batches"]
        self._losses.clear()

    def losses(self) -> list[float]:
        """Return the losses of the last backward passes."""
        self.read()
        return list(self._losses)

    def forked(self, worker: Callable[[], str]) -> None:
        """Called in a forked process."""
        self.ended, self.worker = True, worker
        for tell in self.on_fork:
            tell(worker)

    # Models ---------------------------------------------------------------------------------------

    def enters(self, module: Any, args: Any, kwargs: Any) -> bool:
        """A module is called, and not by another: whether `leaves` must be called when it returns."""
        if self._is_elsewhere():
            return False
        self.within = True
        if self._looks_at_inputs or not self._called.get(module):
            self._called.set(module, True)
            self._outermost(module, args, kwargs)
        return True

    def leaves(self) -> None:
        """The outermost call of a model has returned."""
        self.within = False

    @_guarded
    def _outermost(self, module: Any, args: Any, kwargs: Any) -> None:
        if type(module).__module__ == "torch.nn.modules.loss":
            return
        self.models.add(module)
        self.inputs = (_weakly(args), _weakly(kwargs))
        if self.follower is not None:
            self.follower.calls(module)

    # Losses and steps -----------------------------------------------------------------------------

    @_guarded
    def goes_back(self, tensors: Any) -> None:
        """Gradients of these tensors are about to be computed."""
        tensor = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
        if not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            return
        self.backwards += 1
        if tensor.is_cpu and tensor.dim() == 0:
            # The usual case, handled first: in a step of a millisecond each call counts.
            self._note(tensor.item(), tensor)
            return
        loss = tensor.detach() if tensor.dim() == 0 else tensor.detach().float().mean()
        if loss.device.type != "cpu":
            self._unread.append(loss)
            if len(self._unread) >= _UNREAD:
                self.read()
            return
        self._note(float(loss), tensor)

    def _note(self, loss: float, tensor: torch.Tensor | None) -> None:
        self._losses.append(loss)
        if math.isfinite(loss) or self.nonfinite is not None:
            return
        self.nonfinite = {
            "value": str(loss),
            # A loss on a GPU is read later, together with following ones.
            "place": place() if tensor is not None else None,
            "operators": _operators(tensor),
            "position": self.position() | {"backwards": self.backwards - len(self._unread)},
        }
        if self.follower is not None:
            self.follower.not_finite()

    def read(self) -> None:
        """Read the pending GPU losses."""
        unread, self._unread = self._unread, []
        for loss in torch.stack([tensor.float() for tensor in unread]).tolist() if unread else ():
            self._note(loss, None)

    @_guarded
    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made a step."""
        self.optimizers.add(optimizer)
        self.steps += 1
        if self.follower is not None:
            self.follower.stepped()

    # Loaders --------------------------------------------------------------------------------------

    @_guarded
    def loader_begins(self, loader: Any, iterator: Any) -> None:
        """An iterator of a loader was created."""
        number = self._loaders.get(loader)
        if number is None:
            number = self._count
            self._count += 1
            self._loaders.set(loader, number)
        self._loaders_of.set(iterator, number)

    def delivers(self, iterator: Any, function: Any) -> Any:
        """Return the next batch of a loader."""
        number = None if self._is_elsewhere() else self._loaders_of.get(iterator)
        if number is None or self.follower is None:
            return function(iterator)
        batch = self.follower.delivers(number, iterator, lambda: function(iterator))
        self.batches += 1
        self.batch = batch
        return batch

    def chooses(self, iterator: Any, function: Any) -> Any:
        """Return the indices of the next batch of a loader."""
        number = None if self._is_elsewhere() else self._loaders_of.get(iterator)
        # An iterable data set has none.
        samples = not iterator._num_workers and iterator._dataset_kind == _DatasetKind.Map
        if number is None or self.follower is None or not samples:
            return function(iterator)
        return self.follower.chooses(number, lambda: function(iterator))

    def fetches(self, fetcher: Any, indices: Any, function: Any) -> Any:
        """Return the samples of a batch; report the failure of a worker."""
        name = self.worker() if self.worker is not None else ""
        if not name or self.on_worker_failure is None:
            return function(fetcher, indices)
        states = random_states()
        try:
            return function(fetcher, indices)
        except StopIteration:
            raise
        except Exception:
            self.on_worker_failure(name, indices, states)
            raise

    def _is_elsewhere(self) -> bool:
        return self.ended or threading.get_ident() != self._thread


def _operators(loss: torch.Tensor | None) -> list[str]:
    """Return the operators that made a loss not finite, hidden from modes, which would receive numbers that autograd stores as tensors."""
    with torch._C._DisableTorchDispatch():
        return [record["operator"] for record in origin(loss)] if loss is not None else []


def _weakly(value: Any, depth: int = 0) -> Any:
    """Return arguments with weak references to their tensors."""
    if isinstance(value, torch.Tensor):
        return weakref.ref(value)
    if depth < 4 and type(value) in (list, tuple):
        return type(value)(_weakly(item, depth + 1) for item in value)
    if depth < 4 and type(value) is dict:
        return {key: _weakly(item, depth + 1) for key, item in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None))) else None


assert sys.byteorder == "little", "tensors are kept as the machine has them"
