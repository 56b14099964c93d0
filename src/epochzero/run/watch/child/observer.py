"""Receives what the job does from the hooks, and passes it to the part that handles it."""

from __future__ import annotations

import os
import time
import weakref

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.arguments import arguments
from epochzero.run.watch.child.backward import Backward
from epochzero.run.watch.child.calls import CallRecorder
from epochzero.run.watch.child.components import Components
from epochzero.run.watch.child.experiments.laboratory import Laboratory
from epochzero.run.watch.child.forward import Forward
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.records import SCHEMA, Records
from epochzero.run.watch.child.safety import Safety
from epochzero.run.watch.child.scenes import Scenes
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.child.states import States


class Observer:
    """Sees a training of torch, and emits records.

    Attributes:
        safety: whether it may look.
        components: receives what is created.
        forward: receives calls of models and losses.
        backward: receives backward passes and steps.
        states: receives the states of models and optimizers that are stored or restored.
    """

    def __init__(
        self, records: Records, schedule: Schedule, chosen: frozenset[str] = frozenset()
    ) -> None:
        """Nothing was seen yet.

        Args:
            records: takes what is seen.
            schedule: says when to look closer.
            chosen: paths of layers and parameters whose values are recorded at each inspection.
        """
        self._records = records
        self._schedule = schedule
        self._iterations = Iterations()
        self.safety = Safety(records, schedule, self._iterations)
        models = Models(records, schedule.changed)
        common = (self.safety, self._iterations, models)
        self.components = Components(records, *common)
        calls = CallRecorder(records)
        self._scenes = Scenes(records, schedule, *common, self.components, calls, chosen)
        self._laboratory = laboratory = Laboratory(
            records, schedule, self.safety, lambda: self.forward.called_layer()
        )
        self.forward = Forward(records, *common, self._scenes, calls, laboratory)
        self.backward = Backward(
            records, schedule, *common, self.components, self._scenes, calls, laboratory
        )
        self.states = States(
            records, self.safety, self._iterations, self.components, self._scenes.interrupted
        )
        self.forward.states = self.states
        # A worker of a loader is no part of the training.
        safety = weakref.ref(self.safety)
        os.register_at_fork(after_in_child=lambda: _forget(safety))
        records.emit(
            "begun",
            schema=SCHEMA,
            time=time.time(),
            pid=os.getpid(),
            arguments=arguments(),
            torch=torch.__version__,
            # To ask whether there is one would start its driver.
            gpu=torch.backends.cuda.is_built(),  # type: ignore[no-untyped-call]
        )

    @property
    def spent(self) -> float:
        """Seconds spent on watching so far."""
        return self._schedule.spent

    @property
    def ended(self) -> bool:
        """Whether nothing is watched any more."""
        return self.safety.ended

    def end(self) -> None:
        """Records what is pending, and the end."""
        if self.ended:
            return
        self.safety.busy = True
        try:
            self._laboratory.give_up()
            self._scenes.end()
            iterations = self._iterations.number
            self._records.emit("ended", iterations=iterations, spent=self._schedule.spent)
        except Exception as error:
            self.safety.failed("end", error)
        self._records.flush()
        self.safety.ended = True
        self.safety.busy = False


def _forget(ref: weakref.ref[Safety]) -> None:
    safety = ref()
    if safety is not None:
        safety.ended = True
