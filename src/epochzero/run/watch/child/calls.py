"""The calls of a training in their order: backward passes, steps, and what is called around them.

A cycle ends where a model is called to be trained, or a backward pass begins, after a step: so what follows a step, as
`zero_grad` or a scheduler may, belongs to its cycle, and so do all backward passes whose gradients are accumulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child.places import line_of, place
from epochzero.run.watch.child.records import Records

MOST_SHAPES = 100
"""Orders of calls that are recorded when they are first seen, whether the iteration is inspected or not."""
_MOST_CALLS = 64

Call = list[Any]
"""Kind, number of the optimizer or scheduler, line, flag, and a value or None: of a loss, or of a step how many parameters have
a gradient."""


class CallRecorder:
    """Records the calls of one cycle. Lines are looked up only where the cycle is inspected: that is the slow part."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._calls: list[Call] = []
        self._lines: dict[tuple[str, int], str] = {}
        self._emitted = {""}
        self._iteration = 0
        self._inspected = self._stepped = False
        self._shapes: set[tuple[Any, ...]] = set()
        self._held: ByIdentity[tuple[int, frozenset[int]]] = ByIdentity()

    def add(
        self,
        kind: str,
        subject: int = 0,
        *,
        flag: str = "",
        value: float | None = None,
        where: list[Any] | None = None,
        inspected: bool = False,
    ) -> None:
        """A call is made.

        Args:
            kind: assign (the program sets gradients), backward, clear, clip, epoch, loss, schedule, scaler, step, unscale.
            subject: number of the optimizer or scheduler.
            flag: what else matters, such as ``scaled``.
            value: of a loss; of a step how many parameters have a gradient.
            where: the `place` of the call; None to look for it.
            inspected: whether the iteration is inspected.
        """
        self._stepped = self._stepped or kind == "step"
        if len(self._calls) >= _MOST_CALLS:
            return
        known = self._lines.get((kind, subject))
        if where is None and (inspected or known is None):
            where = place()
        line = line_of(where) if where is not None else known or ""
        if line not in self._emitted:
            self._emitted.add(line)
            self._records.emit("call", line=line, place=where)
        self._lines[kind, subject] = line
        self._calls.append([kind, subject, line, flag, value])

    def begin(self, iteration: int, *, inspected: bool) -> None:
        """A model is called to be trained, or a backward pass begins: after a step the next cycle begins."""
        if self._stepped or len(self._calls) >= _MOST_CALLS:
            self.end()
        self._iteration = iteration
        self._inspected = self._inspected or inspected

    def since_backward(self) -> list[str]:
        """The kinds of the calls after the last backward pass of the cycle, the last first."""
        kinds = (kind for kind, *_ in reversed(self._calls))
        return list(takewhile(lambda kind: kind != "backward", kinds))

    def end(self) -> None:
        """Records the cycle where it is inspected, or its calls have an order that is new."""
        calls, self._calls, self._stepped = self._calls, [], False
        shape = tuple(
            (kind, subject, flag)
            for kind, subject, _, flag, _ in calls
            if kind not in ("assign", "loss")
        )
        is_new = shape not in self._shapes and len(self._shapes) < MOST_SHAPES
        if calls and (self._inspected or is_new):
            self._shapes.add(shape)
            self._records.emit("cycle", iteration=self._iteration, calls=calls)
        self._inspected = False

    def owners(self, module: Any, optimizers: Iterable[Any]) -> frozenset[int]:
        """Numbers of the optimizers that hold parameters of a module."""
        living = list(optimizers)
        known = self._held.get(module)
        if known is None or known[0] != len(living):
            own = {id(parameter) for parameter in module.parameters()}
            found = frozenset(
                number
                for number, optimizer in enumerate(living)
                if any(id(p) in own for group in optimizer.param_groups for p in group["params"])
            )
            known = (len(living), found)
            self._held.set(module, known)
        return known[1]
