"""Records which states a program stores and restores, each as a few numbers that identify it later."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child import structure
from epochzero.run.watch.child.components import Components
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.safety import Safety, safe

MOST_STATES = 200
"""Maximum number of model states that are described; a program may store one in each iteration."""


class States:
    """Receives the states that are stored and loaded.

    Args:
        records: receives the description of each state.
        safety: decides whether an inspection is safe.
        iterations: provides the current iteration.
        components: provides the numbers of optimizers and schedules.
        before_load: called before weights change; returns the number of evaluations so far.
    """

    def __init__(
        self,
        records: Records,
        safety: Safety,
        iterations: Iterations,
        components: Components,
        before_load: Callable[[], int],
    ) -> None:
        self.safety = safety
        self._records = records
        self._iterations = iterations
        self._components = components
        self._before_load = before_load
        self._left = MOST_STATES
        self._unused: list[tuple[weakref.ref[Any], dict[str, float]]] = []

    @safe
    def taken(self, owner: Any) -> None:
        """Record that the state of a model, an optimizer or a schedule is stored."""
        self._emit("take", owner, self._weights(owner))

    @safe
    def loads(self, owner: Any, state: Any) -> Mapping[str, Any]:
        """Describe a state that is about to be loaded; the result is passed to `loaded`."""
        if not isinstance(owner, torch.nn.Module):
            return {}
        evaluations = self._before_load()
        names = {name for name, _ in owner.named_parameters()}
        given = [str(name) for name in state]
        own = [(p, state.get(n)) for n, p in owner.named_parameters() if _is_plain(p)]
        return {
            # These tensors were stored without a copy, so loading them changes nothing.
            "shared": bool(own)
            and all(_is_plain(of) and of.data_ptr() == p.data_ptr() for p, of in own),
            "matched": sum(name in names for name in given),
            "evaluations": evaluations,
            "astray": 0 if names & set(given) else _astray(given, names),
            "before": list(self._weights(owner).values()),
        }

    @safe
    def loaded(self, owner: Any, found: Mapping[str, Any] | None, state: Any) -> None:
        """Record that a state was loaded."""
        weights = self._weights(owner)
        self._emit("load", owner, weights, **(found or {}))
        if weights:
            own = {name: value for name, value in weights.items() if name in state}
            self._unused = [*self._unused[-7:], (weakref.ref(owner), own)]

    def used(self, outermost: Any) -> None:
        """Compare a model that is called with the states that were loaded since its last call."""
        unused, self._unused = self._unused, []
        for ref, loaded in unused:
            module = ref()
            if module is None or all(part is not module for part in outermost.modules()):
                continue
            self.safety.begin_inspection()
            now = structure.weights_of(module)
            other = sum(abs(now.get(n, v) - v) > 0.05 * abs(v) + 1e-6 for n, v in loaded.items())
            number = self._iterations.number
            self._records.emit(
                "use", iteration=number, place=place(), loaded=len(loaded), other=other
            )

    @property
    def are_unused(self) -> bool:
        """Whether a state was loaded and no model has been called since."""
        return bool(self._unused)

    def _weights(self, owner: Any) -> dict[str, float]:
        if not isinstance(owner, torch.nn.Module) or self._left <= 0:
            return {}
        self._left -= 1
        self.safety.begin_inspection()
        return structure.weights_of(owner)

    def _emit(self, kind: str, owner: Any, weights: Mapping[str, float], **fields: Any) -> None:
        if isinstance(owner, torch.nn.Module):
            if not weights and not fields.get("shared"):
                return
            fields |= {"what": "model", "weights": list(weights.values())}
        else:
            optimizes = isinstance(owner, torch.optim.Optimizer)
            what, known = (
                ("optimizer", self._components.number)
                if optimizes
                else ("schedule", self._components.number_of_schedule)
            )
            number = known(owner)
            if kind == "take" and not self._records.is_first(kind, (what, number)):
                return
            fields |= {"what": what, "number": number}
        self._records.emit(kind, iteration=self._iterations.number, place=place(), **fields)


def _astray(given: Iterable[str], names: Iterable[str]) -> int:
    """Return how many tensors of a state would match if the prefix of their names were omitted."""
    ends = {name.partition(".")[2] for name in (*names,)} | set(names)
    short = {name.partition(".")[2] for name in given}
    return max(len(short & set(names)), len(set(given) & ends))


def _is_plain(tensor: Any) -> bool:
    """Whether this tensor has its own memory: it is not distributed over processes and already has values."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_meta
