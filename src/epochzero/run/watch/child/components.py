"""What a training is made of: its layers, optimizers, schedules and loaders, and the lines that made them."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.safety import Safety, safe

MOST_EPOCHS = 5000
MOST_OPTIMIZERS = 8
MOST_WEIGHTS, MOST_KINDS = 1 << 20, 64
"""Weights of a sampler that are read, and values of them that are recorded."""


class Components:
    """Receives what the job creates, and knows it as long as it lives.

    Attributes:
        loader: number of the loader that was begun last; None for none.
    """

    def __init__(
        self, records: Records, safety: Safety, iterations: Iterations, models: Models
    ) -> None:
        self.safety = safety
        self.loader: int | None = None
        self._records = records
        self._iterations = iterations
        self._models = models
        self._optimizers: list[weakref.ref[Any]] = []
        self._loaders: ByIdentity[int] = ByIdentity()
        self._schedulers: ByIdentity[int] = ByIdentity()
        self._scheduled: list[int] = []
        self._loaders_made = self._epochs = 0
        self._idle = False

    @safe
    def module_made(self, module: Any) -> None:
        """Remembers the line that made a layer."""
        self._models.made(module)

    @safe
    def module_made_at(self, module: Any, where: list[Any]) -> None:
        """A layer was made there, before watching started."""
        self._models.made_at(module, where)

    @safe
    def optimizer_made(self, optimizer: Any, where: list[Any] | None = None) -> None:
        """Records an optimizer; ``where`` it was made, if not here."""
        self._note_optimizer(optimizer, where)

    @safe
    def scheduler_made(self, scheduler: Any) -> None:
        """Records a schedule of the learning rate."""
        optimizer = getattr(scheduler, "optimizer", None)
        number = len(self._scheduled)
        self._schedulers.set(scheduler, number)
        self._scheduled.append(0)
        self._records.emit(
            "scheduler",
            number=number,
            optimizer=self.number(optimizer) if optimizer is not None else None,
            **{"class": type(scheduler).__name__},
            place=place(without=scheduler),
            settings=_plain_settings(vars(scheduler)),
        )

    def scheduler_stepped(self, scheduler: Any) -> int | None:
        """Counts a step of a schedule, and returns its number; None while it is being made."""
        number = self._schedulers.get(scheduler)
        if number is not None:
            self._scheduled[number] += 1
        return number

    def scheduled(self) -> list[int]:
        """How often each schedule was stepped."""
        return self._scheduled[:16]

    @safe
    def loader_made(self, loader: Any) -> None:
        """Records a data loader."""
        self._note_loader(loader)

    @safe
    def epoch_begins(self, loader: Any) -> None:
        """A loader starts another epoch."""
        number = self._loaders.get(loader)
        self.loader = number if number is not None else self._note_loader(loader)
        self._epochs += 1
        if self._epochs <= MOST_EPOCHS:
            sampler = getattr(loader, "sampler", None)
            self._records.emit(
                "epoch",
                loader=self.loader,
                iteration=self._iterations.number,
                batches=_length(loader),
                shuffles=bool(getattr(sampler, "shuffle", False)),
                epoch=getattr(sampler, "epoch", None),
            )

    def optimizers(self) -> list[Any]:
        """Those that live."""
        return [value for ref in self._optimizers if (value := ref()) is not None]

    def held(self) -> set[int]:
        """The identities of what optimizers change."""
        groups = (group for optimizer in self.optimizers() for group in optimizer.param_groups)
        return {id(parameter) for group in groups for parameter in group["params"]}

    def number(self, optimizer: Any) -> int:
        """The number of an optimizer, also of one that was made before watching started.

        What wraps another, as those of Accelerate and Lightning do, has its groups and is the same.
        """
        for index, ref in enumerate(self._optimizers):
            known = ref()
            if known is optimizer or getattr(known, "param_groups", None) is optimizer.param_groups:
                return index
        self._note_optimizer(optimizer)
        return len(self._optimizers) - 1

    def number_of_schedule(self, scheduler: Any) -> int | None:
        """The number of a schedule; None for one that was made before watching started."""
        return self._schedulers.get(scheduler)

    def rates(self) -> list[float]:
        """Learning rates of all groups of all optimizers."""
        return [
            float(group.get("lr", 0.0))
            for optimizer in self.optimizers()[:MOST_OPTIMIZERS]
            for group in optimizer.param_groups[:8]
        ]

    def unread(self) -> dict[str, float]:
        """Numbers that a program has given to optimizers of torch under names that these do not read."""
        found = dict[str, float]()
        for optimizer in self.optimizers()[:MOST_OPTIMIZERS]:
            if type(optimizer).__module__.startswith("torch.optim."):
                group = optimizer.param_groups[0]
                named = [(n, v) for n, v in group.items() if n not in optimizer.defaults]
                named += [(f".{n}", v) for n, v in vars(optimizer).items() if n[:1] != "_"]
                found.update((n, float(v)) for n, v in named if type(v) in (int, float))
        return found

    def note_rate(self, optimizer: Any) -> None:
        """Records from when on, and until when, the learning rate of the only optimizer is 0."""
        rates = [group.get("lr") for group in optimizer.param_groups]
        idle = all(type(rate) in (int, float) and rate == 0 for rate in rates)
        if idle is not self._idle and len(self.optimizers()) == 1:
            self._idle = idle
            self._records.emit("rate", iteration=self._iterations.number, idle=idle)

    def _note_optimizer(self, optimizer: Any, where: list[Any] | None = None) -> None:
        self._optimizers.append(weakref.ref(optimizer))
        self.safety.schedule.changed(self._iterations.number)
        self._records.emit(
            "optimizer",
            number=len(self._optimizers) - 1,
            **{"class": type(optimizer).__name__},
            place=where or place(without=optimizer),
            groups=[_plain_settings(group) for group in optimizer.param_groups[:32]],
        )

    def _note_loader(self, loader: Any) -> int:
        number = self._loaders_made
        self._loaders_made += 1
        self._loaders.set(loader, number)
        self._records.emit(
            "loader",
            number=number,
            batch_size=loader.batch_size,
            sampler=type(getattr(loader, "sampler", None)).__name__,
            drawn=_kinds(getattr(getattr(loader, "sampler", None), "weights", None)),
            drop_last=bool(loader.drop_last),
            examples=_length(getattr(loader, "dataset", None)),
            place=place(without=loader),
        )
        return number


def _kinds(weights: Any) -> list[list[float]] | None:
    """The weights of a sampler, each with how many examples have it; None where they are many."""
    if not isinstance(weights, torch.Tensor) or not 0 < weights.numel() <= MOST_WEIGHTS:
        return None
    found, counts = weights.detach().unique(return_counts=True)  # type: ignore[no-untyped-call]
    pairs = zip(found.tolist(), counts.tolist(), strict=True)
    return [list(pair) for pair in pairs] if found.numel() <= MOST_KINDS else None


def _plain_settings(values: dict[str, Any]) -> dict[str, Any]:
    """The settings that are numbers or words; a tensor of one number is read."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.item()
        several = isinstance(value, (tuple, list)) and len(value) <= 8
        items = value if several else [value]
        if not name.startswith("_") and all(
            isinstance(item, (bool, int, float, str)) for item in items
        ):
            found[name] = value
    return found


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None
