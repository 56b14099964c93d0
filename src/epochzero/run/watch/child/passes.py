"""The backward passes and steps of one iteration: what was seen of the parameters, until it is recorded."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from epochzero.run.watch.child.records import joined_rank
from epochzero.run.watch.child.statistics import GRADIENT, Look, few, gradient, of_weights

_WEIGHTS = 4096
_MOST_MESH = 64
"""Ranks of a mesh that is recorded."""

Named = Iterable[tuple[str, Any]]
"""Names and parameters."""


class Passes:
    """Collects what is seen; holds no tensor of the job."""

    def __init__(self) -> None:
        self._backwards: dict[str, int] = {}
        self._left: dict[str, Any] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        self._weights: list[tuple[str, weakref.ref[Any], Any]] = []

    @property
    def is_used(self) -> bool:
        """Whether anything was seen."""
        return bool(self._backwards or self._left or self._parameters)

    def add(self, line: str) -> None:
        """A backward pass begins at this line."""
        self._backwards[line] = self._backwards.get(line, 0) + 1

    def look_before(self, parameters: Named, optimizers: Iterable[Any]) -> None:
        """What is left of earlier gradients: of one parameter an optimizer, the least in the iteration."""
        names = {id(parameter): name for name, parameter in parameters}
        for number, optimizer in enumerate(optimizers):
            held = (p for g in optimizer.param_groups for p in g["params"] if p.requires_grad)
            parameter = next((p for p in held if id(p) in names), None)
            if parameter is None:
                continue
            gone = parameter.grad is None or parameter.grad.is_sparse
            left = 0.0 if gone else float(few(parameter.grad, _WEIGHTS).abs().max())
            known = self._left.get(str(number))
            if known is None or left < known["left"]:
                self._left[str(number)] = {"name": names[id(parameter)], "left": left}

    def step_begins(self, parameters: Named, optimizer: Any) -> None:
        """Looks at the gradients and weights of what an optimizer is about to change."""
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        look = Look()
        # Ranks are compared before the step: some programs average parameters after it.
        several = joined_rank() is not None
        for name, parameter in parameters:
            if id(parameter) not in mine or name in self._parameters:
                continue
            found = self._parameters[name] = {}
            if hasattr(parameter, "_local_tensor"):
                found["sharded"] = _shards(parameter)
            # Without a backward pass before, what is there is of the step before.
            if parameter.grad is not None and self._backwards:
                found["gradient"] = {}
                look.add(found["gradient"], GRADIENT, gradient(parameter.grad))
            before = few(parameter, _WEIGHTS).clone()
            if several:
                found["before"] = {}
                look.add(found["before"], GRADIENT, of_weights(before))
            self._weights.append((name, weakref.ref(parameter), before))
        look.read()

    def step_ended(self) -> None:
        """Looks at what the step has changed; its closure may have computed the gradients."""
        weights, self._weights = self._weights, []
        if not weights:
            return
        look = Look()
        for name, ref, before in weights:
            parameter = ref()
            if parameter is None:
                continue
            found = self._parameters[name]
            if parameter.grad is not None and "gradient" not in found:
                found["gradient"] = {}
                look.add(found["gradient"], GRADIENT, gradient(parameter.grad))
            after = few(parameter, _WEIGHTS)
            for what, values in (("weight", after), ("update", after - before)):
                found[what] = {}
                look.add(found[what], GRADIENT, of_weights(values))
        look.read()

    def ended(self) -> dict[str, Any]:
        """What was seen."""
        return {"backwards": self._backwards, "before": self._left, "parameters": self._parameters}


def _shards(parameter: Any) -> dict[str, Any]:
    """How a parameter is spread over ranks: dimensions of the mesh, which dimension each splits, ranks of a small mesh."""
    mesh = parameter.device_mesh
    dims = [getattr(placement, "dim", None) for placement in parameter.placements]
    found = {"dimensions": mesh.ndim, "placements": dims}
    return found | ({"ranks": mesh.mesh.tolist()} if mesh.size() <= _MOST_MESH else {})
