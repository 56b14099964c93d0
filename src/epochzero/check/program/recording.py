"""The events of a program in their order, each with its phase, which later events may change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from epochzero.check.findings import SourceLocation
from epochzero.check.program import phases
from epochzero.check.program.events import CertainError, Event, LibraryCall, Lookup, Situation
from epochzero.check.program.frames import CallFrame, PathCondition, written_receiver

_LASTING = frozenset({"abstract", "arguments", "import", "unpack"})
"""Kinds of failures that do not depend on earlier iterations of a loop."""


@dataclass(slots=True)
class _Recorded:
    """An event whose phase may still change.

    Attributes:
        kind: class of the event.
        fields: its fields but the situation, which is built at the end.
        function, via, firm: of the frame at that time.
    """

    kind: type[Event]
    fields: tuple[object, ...]
    place: SourceLocation
    path: PathCondition
    function: str
    via: tuple[SourceLocation, ...]
    firm: str
    phase: str

    def event(self) -> Event:
        path = self.path
        at = Situation(
            self.place,
            self.via,
            self.phase,
            path.certain and not (path.is_later and self._may_be_undone()),
            path.handled,
            self.function,
            path.loops > 0,
            path.is_later,
            path.is_aside,
        )
        return self.kind(*self.fields, at)  # type: ignore[call-arg,arg-type]

    def _may_be_undone(self) -> bool:
        """Whether an earlier iteration of a loop may have added what is missing."""
        is_lasting = self.kind is CertainError and self.fields[0] in _LASTING
        return self.kind in (Lookup, CertainError) and not is_lasting


class Recording:
    """The events so far. A loop that steps an optimizer is the training, whatever the code in it is called."""

    def __init__(self) -> None:
        self._recorded: list[_Recorded] = []
        self._has_stepped = False
        self._trained_at = -1
        self._evaluates = False

    def __len__(self) -> int:
        return len(self._recorded)

    def events(self) -> tuple[Event, ...]:
        """All events."""
        return tuple(each.event() for each in self._recorded)

    def add(
        self,
        kind: type[Event],
        fields: tuple[object, ...],
        place: SourceLocation,
        frame: CallFrame,
        path: PathCondition,
        call: ast.expr | None = None,
    ) -> None:
        """Record an event.

        Args:
            kind: its class.
            fields: its fields but the situation.
            place: its location.
            frame: the function in which it happens.
            path: the conditions under which it happens.
            call: the call of a library whose name is the first field; some begin or end the training.
        """
        if call is None:
            phase = self._phase(frame)
        else:
            phase = self._phase_of_call(str(fields[0]), call, frame, path)
        self._recorded.append(
            _Recorded(kind, fields, place, path, frame.name, frame.via, frame.firm, phase)
        )

    def _phase(self, frame: CallFrame) -> str:
        return "evaluation" if self._trained_at >= 0 or self._evaluates else frame.phase

    def _phase_of_call(
        self, name: str, call: ast.expr, frame: CallFrame, path: PathCondition
    ) -> str:
        if path.loops and phases.is_step(name, written_receiver(call)):
            self._has_stepped = True
        if name.endswith((".eval", ".train")) and name.startswith(("torch.nn.", "transformers.")):
            self._evaluates = name.endswith(".eval")
        if phases.is_fit(name):
            self.train_from(len(self._recorded))
            return "training"
        if phases.is_optimizer(name):
            self._trained_at = -1
        if phases.is_verdict(name):
            return "evaluation"
        phase = self._phase(frame)
        return "preprocessing" if phase == "initialization" and phases.is_data(name) else phase

    def train_from(self, begin: int) -> None:
        """Assign the training phase to all events since ``begin``, and to those between an earlier training and it."""
        earlier = self._trained_at if self._trained_at >= 0 else begin
        for each in self._recorded[min(earlier, begin) :]:
            each.phase = each.firm or "training"
        self._trained_at = len(self._recorded)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Walk a loop; if an optimizer is stepped in it, its events belong to training."""
        stepped, begin = self._has_stepped, len(self._recorded)
        self._has_stepped = False
        try:
            yield
        finally:
            if self._has_stepped and not self._sets_up(begin):
                self.train_from(begin)
            self._has_stepped = self._has_stepped or stepped

    def _sets_up(self, begin: int) -> bool:
        """Whether an optimizer was created since ``begin``: then the loop is over whole runs, not over steps."""
        return any(
            each.kind is LibraryCall and phases.is_optimizer(str(each.fields[0]))
            for each in self._recorded[begin:]
        )
