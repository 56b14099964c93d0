"""Which scene the training is in, an iteration or an evaluation: begins and ends them, and records each.

Between iterations may lie an evaluation: forward calls without gradients, or of a model in evaluation
mode. `epochzero.injected.iterations` decides where an iteration ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child import structure
from epochzero.run.watch.child.calls import CallRecorder
from epochzero.run.watch.child.components import Components
from epochzero.run.watch.child.losses import Losses
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.passes import Passes
from epochzero.run.watch.child.places import calls, place
from epochzero.run.watch.child.records import Records, joined_rank
from epochzero.run.watch.child.safety import Safety
from epochzero.run.watch.child.scene import Scene
from epochzero.run.watch.child.schedule import DESCRIBED_EVALUATIONS, Schedule

MOST_EVALUATIONS = 2000
FIRST_EVALUATIONS = 8
"""Evaluations of which the weights that nothing trains are noted, whatever it takes."""


class Scenes:
    """Where the training is.

    Attributes:
        scene: what is seen of forward calls and losses now.
        passes: what is seen of backward passes and steps in the iteration.
        losses: of the backward passes, of this iteration and of those before.
        chosen: paths of layers and parameters whose values are recorded at each inspection.
    """

    def __init__(
        self,
        records: Records,
        schedule: Schedule,
        safety: Safety,
        iterations: Iterations,
        models: Models,
        components: Components,
        calls: CallRecorder,
        chosen: Iterable[str],
    ) -> None:
        self.scene = Scene(evaluating=False, looking=True, held=components.held)
        self.passes = Passes()
        self.losses = Losses(records)
        self.chosen = frozenset(chosen)
        self._records = records
        self._schedule = schedule
        self._safety = safety
        self._iterations = iterations
        self._models = models
        self._components = components
        self._calls = calls
        self._evaluations = 0
        self._resting, self._woken = 0, -1

    def rests(self, module: Any) -> bool:
        """Whether this iteration, of which this is the first call, and those after it are left out."""
        scene, iterations = self.scene, self._iterations
        if scene.looking or scene.evaluating or scene.calls > 1 or iterations.backwards:
            return False
        may_rest = iterations.is_plain and iterations.number > self._woken
        steps = self._schedule.rest(iterations.number) if may_rest else 0
        if not steps or self.chosen or not all(part.training for part in module.modules()):
            return False
        self._resting = steps
        self._safety.rest(steps)
        return True

    def wake(self) -> None:
        """Observes again; the iterations that were left out count."""
        self._begin_iteration(self._count_skipped())

    def _count_skipped(self) -> int:
        skipped = self._resting - max(0, self._safety.resting - 1)
        self._safety.wake()
        self._iterations.skip(skipped)
        self._woken = self._iterations.number
        return skipped

    def model_called(self, module: Any, *, evaluating: bool) -> None:
        """A model is called outermost: another scene begins where this call belongs to another one."""
        if not evaluating:
            self._trains(module)
            return
        if self._is_in_between(module):
            return
        lines = (self._components.loader, *calls())
        if not self._ends_for_evaluation(module, lines):
            return
        split = self.scene.split if self.scene.evaluating else set()
        looking = self._schedule.due(self._evaluations, evaluates=True)
        self._begin(evaluating=True, looking=looking)
        self.scene.begins_at(module, lines, self._components.loader, place(), split)

    def _trains(self, module: Any) -> None:
        if self.scene.evaluating:
            self.evaluation_ended()
        elif self._iterations.model_called(self._cleared):
            self.iteration_ended()
        self._calls.begin(self._iterations.number, inspected=self.scene.looking)
        self._models.trains(module)

    def _is_in_between(self, module: Any) -> bool:
        """Whether a frozen model or a target network is called in the middle of an iteration."""
        iterations = self._iterations
        begun = bool(self.scene.calls or iterations.stepped or iterations.backwards)
        return begun and not any(parameter.requires_grad for parameter in module.parameters())

    def _ends_for_evaluation(self, module: Any, lines: Any) -> bool:
        """Ends what went on before an evaluation; whether one begins."""
        scene, iterations = self.scene, self._iterations
        if scene.evaluating:
            if not scene.is_other(module, lines):
                return False
            self._record_evaluation()
        elif iterations.stepped and not module.training:
            self.iteration_ended()
        else:
            never_trained = module.training or not self._models.has_trained(module)
            in_iteration = iterations.stepped or iterations.backwards
            return not in_iteration and not (scene.calls and never_trained)
        return True

    def _cleared(self) -> bool:
        """Whether no gradients are left: without a step another iteration has begun."""
        optimizers = self._components.optimizers()
        for _, parameter in self._models.parameters():
            if parameter.grad is not None:
                return not optimizers and not bool(parameter.grad.any())
        return True

    def interrupted(self) -> int:
        """End the current evaluation because a load is about to change weights; return the number of evaluations so far."""
        if self.scene.evaluating:
            self.evaluation_ended()
        return self._evaluations

    def evaluation_ended(self) -> None:
        """The evaluation is over; what comes is of the iteration."""
        self._record_evaluation()
        self._begin_iteration()

    def iteration_ended(self) -> None:
        """Records the iteration, and begins the next."""
        if self.scene.looking:
            self._record_iteration()
        elif self.losses.are_many:
            self.losses.emit()
        if self.passes.is_used:
            self.passes = Passes()
        self._iterations.next()
        self._begin_iteration()

    def record_chosen(self, path: str, value: Any) -> None:
        """Records a value that the user has chosen, by its path behind the number of its model."""
        name = path.partition("/")[2]
        if name in self.chosen:
            self.scene.value(name, value)

    def end(self) -> None:
        """Records what is pending."""
        if self._safety.resting:
            self._count_skipped()
        if self.scene.evaluating:
            self._record_evaluation()
        self._calls.end()
        self.losses.emit()

    def _begin_iteration(self, skipped: int = 0) -> None:
        looking = self._schedule.due(self._iterations.number, skipped)
        self._begin(evaluating=False, looking=looking)

    def _begin(self, *, evaluating: bool, looking: bool) -> None:
        self.scene = Scene(evaluating=evaluating, looking=looking, held=self._components.held)
        self._safety.inspect(inspects=evaluating or looking)

    def _record_evaluation(self) -> None:
        scene = self.scene
        if not scene.is_worth_a_record or self._evaluations >= MOST_EVALUATIONS:
            return
        if scene.calls == 1 and scene.training and not scene.measured:
            self._records.emit("pass", iteration=self._iterations.number, **scene.ended())
            return
        self._evaluations += 1
        self.losses.emit()
        number, optimizers = self._iterations.number, self._components.optimizers()
        others, unset = {}, []
        # A copy that is only evaluated is part of no iteration: the first times show whether it follows the model.
        if scene.looking or self._evaluations <= FIRST_EVALUATIONS:
            self._models.emit(number, optimizers)
            others, unset = self._models.others(optimizers), self._models.unset()
        module = scene.module() if scene.module is not None else None
        described = scene.measured and self._evaluations <= DESCRIBED_EVALUATIONS
        weights = structure.weights_of(module) if module is not None and described else {}
        fields = {"others": others, "unset": unset, "weights": list(weights.values())}
        self._records.emit("evaluation", iteration=number, **fields, **scene.ended())

    def _record_iteration(self) -> None:
        for name, parameter in self._models.all_parameters() if self.chosen else ():
            self.record_chosen(name, parameter)
        self._models.emit(self._iterations.number, self._components.optimizers())
        self.losses.emit()
        self._records.emit(
            "iteration",
            iteration=self._iterations.number,
            time=time.time(),
            rates=self._components.rates(),
            unread=self._components.unread(),
            stepped=self._iterations.stepped,
            scheduled=self._components.scheduled(),
            others=self._models.others(self._components.optimizers()),
            unheld=self._models.unheld(self._components.optimizers()),
            statistics=self._models.statistics() if joined_rank() is not None else {},
            **{**self.passes.ended(), **self.scene.ended(), "loader": self._components.loader},
        )
