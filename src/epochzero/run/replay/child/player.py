"""Replays a captured training: from its start, or from the snapshot with the stored batches.

From the start, the program runs unchanged. Batches of loaders with workers may depend on which worker was faster:
if a batch differs from the captured one, the captured one is delivered. From the snapshot, the program's own loop
starts as usual; when a loader is first asked for a batch, random states, weights and optimizers are replaced by
those of the snapshot, and the stored batches follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _DatasetKind

from epochzero.run.replay.child.course import Course
from epochzero.run.replay.child.files import read_json
from epochzero.run.replay.child.sources import set_random_states
from epochzero.run.replay.child.structure import LeftOutError, decode
from epochzero.run.replay.child.tensors import read_tensors

_PATIENCE = 2
"""Steps and batches after the position of the failure until it is certain that it did not occur."""
Stop = Callable[[str], object]


class Player:
    """Replays one capture.

    Attributes:
        notes: differences from the captured run, one sentence each.
    """

    def __init__(
        self,
        course: Course,
        manifest: Mapping[str, Any],
        tensors: Path,
        stop: Stop,
        *,
        from_snapshot: bool,
        step: int | None,
    ) -> None:
        """Prepare the replay.

        Args:
            course: of the training.
            manifest: of the capture.
            tensors: its tensor file.
            stop: ends the process: ``reached``, ``passed``, ``nonfinite``, or a sentence that explains why not.
            from_snapshot: whether to start from the snapshot.
            step: step after which to stop; None for the one that failed.
        """
        self.notes: set[str] = set()
        self._course = course
        self._stop = stop
        self._step = step
        self._failing = manifest["position"]
        self._failure = manifest["failure"]
        self._folder = tensors.parent
        self._parts = manifest["parts"]
        self._snapshot = manifest["snapshot"] if from_snapshot else None
        self._jumps = from_snapshot
        self._jumped = False
        since_start = manifest["snapshot"] is None and manifest["complete"]
        self._events = list(manifest["events"]) if from_snapshot or since_start else []
        self._tensors = read_tensors(tensors) if self._events and tensors.exists() else {}
        self._unloaded: list[Mapping[str, Any]] = []
        self._indices: Any = None

    # Events ---------------------------------------------------------------------------------------

    def delivers(self, loader: int, iterator: Any, deliver: Callable[[], Any]) -> Any:
        """See `Follower`."""
        if self._course.batches > self._failing["batches"] + _PATIENCE and self._step is None:
            self._stop("passed")
        if self._jumps and not self._jumped:
            if not self._events or loader != self._events[0]["loader"]:
                return deliver()
            self._jump(iterator)
        event = self._next(loader)
        if not self._jumps:
            return self._compared(event, iterator, deliver)
        if event is None:
            self._stop("passed")
        return self._handed_out(event, iterator, deliver)

    def chooses(self, loader: int, choose: Callable[[], Any]) -> Any:
        """See `Follower`: after a jump, return the captured indices, so that the same samples are read."""
        indices, self._indices = self._indices, None
        if indices is None:
            return choose()
        # The sampler must still draw its random numbers.
        with suppress(StopIteration):
            choose()
        return indices

    def calls(self, model: Any) -> None:
        """See `Follower`: the first call of a model after the jump loads its weights."""
        for state in self._unloaded:
            values = decode(state["values"], self._tensors)
            living = {**dict(model.named_parameters()), **dict(model.named_buffers())}
            if {n: t.shape for n, t in values.items()} == {n: t.shape for n, t in living.items()}:
                with torch.no_grad():
                    for name, value in values.items():
                        living[name].copy_(value)
                self._unloaded.remove(state)
                return

    def not_finite(self) -> None:
        """See `Follower`."""
        if self._step is None and (self._failure is None or self._jumps):
            self._stop("nonfinite")

    def stepped(self) -> None:
        """See `Follower`."""
        if self._step is not None and self._course.steps >= self._step:
            self._stop("reached")
        if self._course.steps > self._failing["steps"] + _PATIENCE and self._step is None:
            self._stop("passed")

    # From the start -------------------------------------------------------------------------------

    def _compared(self, event: Any, iterator: Any, deliver: Callable[[], Any]) -> Any:
        """Return the delivered batch; for loaders with workers, the captured one."""
        try:
            batch = deliver()
        except (OSError, ValueError, RuntimeError) as error:
            kept = self._kept(event)
            if kept is None:
                raise
            self.notes.add(
                f"the recorded batches were used: reading the data raises {type(error).__name__}"
            )
            return kept
        if event is None or not iterator._num_workers:
            return batch
        if event["kind"] == "failed":
            self.notes.add("a sample that failed in a worker was loaded again in the main process")
            return self._made_again(iterator)
        kept = self._kept(event)
        if kept is None or _same(batch, kept):
            return batch
        self.notes.add(
            "the workers delivered batches in a different order: the recorded batches were used"
        )
        return kept

    def _kept(self, event: Any) -> Any:
        """Return the batch of an event; None if it was not stored."""
        if event is None or event["kind"] != "batch":
            return None
        try:
            return decode(event["batch"], self._tensors)
        except LeftOutError:
            return None

    # From the snapshot ----------------------------------------------------------------------------

    def _jump(self, iterator: Any) -> None:
        """Restore the snapshot; without one, only the batches since the start are delivered."""
        self._jumped = True
        if self._snapshot is None:
            return
        if self._snapshot["begun"] and not iterator._num_workers:
            # As in the captured run, the sampler has drawn its seed before this point.
            iterator._next_index()
        course, states = self._course, self._snapshot["states"]
        course.jumps(self._snapshot["position"])
        stored = dict(states["items"])
        self._unloaded = [dict(item["items"]) for item in stored["models"]["items"]]
        for kind, living in (
            ("optimizers", course.optimizers),
            ("schedulers", course.schedulers),
            ("scalers", course.scalers),
        ):
            items = stored[kind]["items"]
            if len(items) != len(list(living)):
                self._stop(f"the program has {len(list(living))} {kind}, but had {len(items)}")
            for value, state in zip(living, items, strict=True):
                self._load(kind, value, state)
        set_random_states(self._snapshot["random"])

    def _load(self, kind: str, target: Any, stored: Any) -> None:
        state = {}
        for name, value in (stored or {"items": ()})["items"]:
            try:
                state[name] = decode(value, self._tensors)
            except LeftOutError as error:
                # Non-data parts of a schedule, such as a function, were created again by the program.
                if kind != "schedulers":
                    self._stop(f"the state of one of the {kind} was not recorded: {error}")
        try:
            target.load_state_dict(state)
        except (ValueError, KeyError) as error:
            self._stop(f"the state of one of the {kind} does not fit: {error}")

    def _next(self, loader: int) -> Any:
        """Return the next event of a loader; earlier events of other loaders remain."""
        for number, event in enumerate(self._events):
            if event["loader"] == loader:
                return self._events.pop(number)
        return None

    def _handed_out(self, event: Any, iterator: Any, deliver: Callable[[], Any]) -> Any:
        if event["kind"] == "end":
            raise StopIteration
        if event["kind"] == "failed" and iterator._num_workers:
            return self._made_again(iterator)
        if not iterator._num_workers and event["indices"] is not None:
            self._indices = decode(event["indices"], self._tensors)
            # Sample the batch again, so that random numbers drawn by samples are drawn.
            return self._compared(event, iterator, deliver)
        batch = self._kept(event)
        if batch is None:
            self._stop("a batch contains values that could not be recorded")
        return batch

    def _made_again(self, iterator: Any) -> Any:
        """Read, in this process, the samples at which a worker failed."""
        name = min((name for name in self._parts if name.startswith("worker-")), default=None)
        if name is None:
            self._stop("the samples that failed in a worker were not recorded")
            return None
        stored = read_json(self._folder / name)
        set_random_states(stored["random"])
        indices = decode(stored["indices"], self._tensors)
        kinds: Any = _DatasetKind
        fetcher = kinds.create_fetcher(
            iterator._dataset_kind, iterator._dataset, iterator._auto_collation,
            iterator._collate_fn, iterator._drop_last,
        )  # fmt: skip
        wrap: Any = ExceptionWrapper
        try:
            return fetcher.fetch(indices)
        except Exception:
            failed = wrap(
                where=f"in DataLoader worker process {name.partition('.')[0].rpartition('-')[2]}"
            )
        return failed.reraise()


def _same(batch: Any, kept: Any) -> bool:
    """Whether two batches have the same tensors, bit for bit."""
    mine, other = _tensors_in(batch), _tensors_in(kept)
    return len(mine) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and bool(_bits(a).equal(_bits(b)))
        for a, b in zip(mine, other, strict=True)
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, (Mapping, list, tuple)):
        return [tensor for item in items for tensor in _tensors_in(item)]
    return []
