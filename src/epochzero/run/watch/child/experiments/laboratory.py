"""Decides in which iterations to experiment, records them, and emits what the experiments find."""

from __future__ import annotations

import dis
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import torch

from epochzero.run.watch.child.batches import tensors_in
from epochzero.run.watch.child.experiments import dependence, pairing, repair, step
from epochzero.run.watch.child.experiments.dependence import RecordedStep
from epochzero.run.watch.child.experiments.tape import Recorder
from epochzero.run.watch.child.experiments.worlds import UnfitError, random_states
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.records import Records, joined_rank
from epochzero.run.watch.child.safety import Safety
from epochzero.run.watch.child.schedule import Schedule

FIRST, FACTOR, MOST = 2, 3, 6
"""The iteration of the first experiment, how much later each next one is, and how many there are."""
FREE_S, SHARE = 0.4, 0.01
"""Seconds that experiments may take in any job, and their share of its time in addition."""
MOST_EVALUATED, APART, EVALUATED_S = 8, 0.5, 0.1
"""Batches of evaluations whose scale is noted, how far it is from that of the training, in spreads, before they are compared at once,
and the free seconds for this.
"""
PAIRING_S = 0.1
"""Free seconds after which the pairs of inputs and targets are compared no more."""
_FORWARDS = 12
"""How often the forward pass is computed again, at most, in all worlds of one iteration."""

_OTHERS_CALL = ("DataParallel", "OptimizedModule", "ScriptModule", "RecursiveScriptModule")
"""Modules that are called in other threads, or not by Python."""


class Laboratory:
    """Experiments on a few iterations of the training.

    Args:
        records: takes what is found.
        schedule: knows how long the job takes.
        safety: whether a hook runs now.
        layer: the path of the layer that is being called, and whether any is.
    """

    def __init__(
        self,
        records: Records,
        schedule: Schedule,
        safety: Safety,
        layer: Callable[[], tuple[str, bool]],
    ) -> None:
        self._records = records
        self._schedule = schedule
        self._safety = safety
        self._layer = layer
        self._recorder: Recorder | None = None
        self._subject: RecordedStep | None = None
        self._before: Any = None
        self._inputs: list[torch.Tensor] = []
        self._read: list[bool] = []
        self._next, self._count, self._iteration = FIRST, 0, 0
        self._last, self._fastest = (0, 0.0), float("inf")
        self._spent, self._free = 0.0, FREE_S
        self._trained: repair.Moments | None = None
        self._evaluated: list[repair.Moments] = []
        self._sample = pairing.Sample()
        self._paired, self._pairing_s = 0, 0.0
        self._compilations = _compilations()

    def model_called(self, module: Any, given: Any, iteration: int) -> None:
        """A model is called to be trained: the recording begins, if it is time."""
        named = tensors_in(given)
        self._sample.given([tensor for _, tensor in named])
        self._note_time(iteration)
        if self._recorder is not None or not self._is_due(module, iteration):
            return
        self._iteration = iteration
        self._inputs = [tensor for _, tensor in named]
        self._trained = next(map(repair.moments, self._inputs), None)
        self._read = [is_read(module, name) for name, _ in named]
        self._recorder = Recorder(
            lambda: not (self._safety.busy or self._safety.ended), self._where
        )
        tensors = [*self._inputs, *module.parameters()]
        self._recorder.tape.random = random_states(tensors)
        self._safety.modes = 1
        self._recorder.__enter__()  # type: ignore[no-untyped-call]

    def model_returned(self, output: Any) -> None:
        """The outermost call of a model has ended."""
        if self._recorder is not None:
            for _, tensor in tensors_in(output):
                number = self._recorder.number(tensor)
                if number is not None:
                    self._recorder.tape.outputs.append(number)

    def backward_begins(self, loss: torch.Tensor) -> None:
        """The loss is known: the recording ends."""
        recorder = self._recorder
        # A step after a second backward pass is not that of the loss of the first one alone.
        self._subject = self._before = None
        if recorder is None:
            return
        number = recorder.number(loss)
        numbers = [recorder.number(tensor) for tensor in self._inputs]
        unread = [
            position
            for position, (tensor, seen) in enumerate(zip(self._inputs, numbers, strict=True))
            if not (self._read[position] or seen is not None or not tensor.dim())
            and not torch.equal(tensor, tensor.roll(1, 0))
        ]
        tape = recorder.tape
        self.give_up()
        if number is None or tape.problem:
            self._emit([], tape.problem or "the loss was not recorded")
            return
        inputs = [n for n in numbers if n in tape.leaves and tape.leaves[n].dim()]
        count = tape.leaves[inputs[0]].shape[0] if inputs else 0
        self._subject = RecordedStep(
            tape,
            number,
            loss.detach().clone(),
            [n for n in inputs if tape.leaves[n].shape[0] == count],
            frozenset(n for n, v in tape.leaves.items() if isinstance(v, torch.nn.Parameter)),
            unread=unread,
        )

    def backward_ended(self, optimizers: Iterable[Any]) -> None:
        """Gradients are known, and parameters are as they were: experiments."""
        if self._subject is None:
            return
        groups = [[p for group in o.param_groups for p in group["params"]] for o in optimizers]
        # What an optimizer holds that gets no gradient at all is trained by another loss, as the critic of an actor.
        held = {id(p) for group in groups if any(p.grad is not None for p in group) for p in group}
        leaves = self._subject.tape.leaves
        self._subject.without = [
            n
            for n in self._subject.parameters
            if id(leaves[n]) in held and leaves[n].requires_grad and leaves[n].grad is None
        ]
        self._run(self._facts, self._subject)
        self._before = self._subject and step.parameters_before(self._subject)

    def _facts(self, subject: RecordedStep, until: float) -> list[dict[str, Any]]:
        found = dependence.facts(subject, until)
        with suppress(UnfitError):
            found += repair.facts(subject, self._evaluated, until)
        return found

    def evaluated(self, given: Any) -> None:
        """A model is evaluated on these inputs: a recording ends."""
        self.give_up()
        found = next((repair.moments(tensor) for _, tensor in tensors_in(given)[:1]), None)
        if found is None or self._trained is None or len(self._evaluated) >= MOST_EVALUATED:
            return
        apart = repair.distance(self._trained, found)
        if APART < apart < float("inf") and not self._evaluated:
            self._schedule.changed(self._last[0])
            self._next, self._free = 1, self._free + EVALUATED_S
        if apart < float("inf"):
            self._evaluated.append(found)

    def target(self, target: Any, iteration: int) -> None:
        """A loss is computed from this target: what inputs tell about targets, if enough examples have come."""
        sample = self._sample
        if not isinstance(target, torch.Tensor) or not sample.belongs(target):
            return
        size, spent = sample.count // pairing.FEWEST, self._pairing_s > PAIRING_S
        if size == self._paired or spent or joined_rank() is not None:
            return
        self._paired, began = size, time.thread_time()
        fact = pairing.facts(sample)
        # These seconds are its own, as those of other experiments.
        taken = time.thread_time() - began
        self._pairing_s += taken
        self._schedule.spent -= taken
        self._records.emit("pairing", iteration=iteration, spent=taken, **fact)

    def step_ended(self) -> None:
        """Parameters have been changed: how the loss of the batch is now."""
        subject, before, self._subject, self._before = self._subject, self._before, None, None
        if subject is not None and before:
            self._run(step.facts, subject, before)

    def give_up(self) -> None:
        """Ends a recording."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
            self._safety.modes = 0
        self._inputs = []

    def _run(self, experiment: Callable[..., list[dict[str, Any]]], *subject: Any) -> None:
        leaves = subject[0].tape
        began, spent = time.thread_time(), self._schedule.spent
        try:
            if any(leaves.leaves[n]._version != leaves.versions[n] for n in subject[0].inputs):
                raise UnfitError("the batch was written to")
            self._emit(experiment(*subject, began + self._left()), "")
        except UnfitError as error:
            self._emit([], str(error))
            self._subject = None
        finally:
            # Inspections have a budget of their own.
            taken = time.thread_time() - began
            self._spent += taken
            self._schedule.spent = spent - taken

    def _emit(self, facts: Sequence[dict[str, Any]], problem: str) -> None:
        self._records.emit(
            "experiment", iteration=self._iteration, facts=facts, problem=problem, spent=self._spent
        )

    def _left(self) -> float:
        return self._free + SHARE * self._schedule.elapsed - self._spent

    def _is_due(self, module: Any, iteration: int) -> bool:
        if self._count >= MOST or iteration < self._next or not iteration:
            return False
        if _FORWARDS * self._fastest / 2 > self._left() or joined_rank() is not None:
            return False
        self._next, self._count = iteration * FACTOR, self._count + 1
        # The compiler makes other kernels where operators are recorded.
        compiled = _compilations() > self._compilations
        return not compiled and not any(
            type(part).__name__ in _OTHERS_CALL for part in module.modules()
        )

    def _note_time(self, iteration: int) -> None:
        """How long an iteration takes: the shortest between the first calls of two in a row."""
        before, began = self._last
        if iteration != before or not began:
            self._last = iteration, time.thread_time()
        if iteration == before + 1 and began:
            self._fastest = min(self._fastest, self._last[1] - began)

    def _where(self) -> tuple[list[Any] | None, str, bool]:
        return place(), *self._layer()


def is_read(module: Any, name: str) -> bool:
    """Whether the code of a module's ``forward`` reads an argument; True where that is unknown.

    Operators do not show it: a tensor may be read as a list or an array.

    Args:
        module: of any class.
        name: ``0.1`` for the second positional argument, ``1.mask`` for a named one.
    """
    code = getattr(type(module).forward, "__code__", None)
    kind, _, argument = name.partition(".")
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    if kind == "0" and argument.isdigit() and int(argument) < len(names):
        argument = names[int(argument)]
    if code is None or argument not in names:
        return True
    loaded = (i.argval for i in dis.get_instructions(code) if not i.opname.startswith("STORE"))
    return any(
        argument == value or argument in (value if isinstance(value, tuple) else ())
        for value in loaded
    )


def _compilations() -> int:
    """How many functions the compiler has been asked to compile."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return sum(dynamo.counters["frames"].values()) if dynamo is not None else 0
