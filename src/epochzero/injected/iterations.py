"""Where an iteration of a training ends, whatever its loop looks like.

An iteration is what happens up to the end of an optimizer's step: forward calls of the model, the loss,
one or more backward passes, the step; of several optimizers each has stepped once. A program that never
steps has an iteration where its gradients are gone again, or every so many backward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

WITHOUT_STEP = 64
"""So many backward passes in a row without a step are an iteration, where gradients are not cleared."""


class Iterations:
    """Receives what a training does, and answers whether an iteration has ended; then `next` is called.

    Attributes:
        number: of the current iteration, 0 for the first.
        backwards: passes in it so far.
        steps: of all optimizers, in all iterations.
        in_backward, in_step: whether a pass or a step is running.
    """

    def __init__(self) -> None:
        self.number = self.backwards = self.steps = 0
        self.in_backward = self.in_step = False
        self._stepped: set[int] = set()
        self._expected: set[int] | None = None
        self._without_step = 0

    @property
    def stepped(self) -> int:
        """How many optimizers have stepped in this iteration."""
        return len(self._stepped)

    @property
    def is_plain(self) -> bool:
        """Whether one optimizer steps in each iteration, and the next one begins."""
        return self._expected is not None and len(self._expected) == 1 and not self._stepped

    def skip(self, count: int) -> None:
        """So many iterations, of one step each, were not observed."""
        self.number += count
        self.steps += count

    def model_called(self, cleared: Callable[[], bool]) -> bool:
        """A model is called to be trained; whether the iteration has ended before.

        Args:
            cleared: says whether no gradients are left; asked only where that decides.
        """
        waits = bool(self.backwards) and not self._stepped and not self.in_step
        return waits and cleared()

    def backward_begins(self) -> None:
        """A backward pass begins."""
        self.in_backward = True
        self.backwards += 1
        self._without_step += 1

    def backward_ended(self) -> bool:
        """A backward pass has ended; whether the iteration has."""
        self.in_backward = False
        return self._without_step >= WITHOUT_STEP and not self._stepped and not self.in_step

    def has_stepped(self, optimizer: object) -> bool:
        """Whether an optimizer has stepped in this iteration: its next step is one of the next."""
        return id(optimizer) in self._stepped

    def step_begins(self) -> None:
        """An optimizer begins to step."""
        self.in_step = True

    def step_ended(self, optimizer: object, optimizers: Iterable[object]) -> bool:
        """An optimizer has stepped, or its step was left out; whether the iteration has ended.

        Args:
            optimizer: that one.
            optimizers: all that live. Those count that stepped in the iteration before, if there was one.
        """
        self.in_step = False
        self._without_step = 0
        self.steps += 1
        self._stepped.add(id(optimizer))
        alive = {id(optimizer) for optimizer in optimizers}
        return self._stepped >= (alive if self._expected is None else self._expected & alive)

    def next(self) -> None:
        """The iteration is over; the next begins."""
        self.number += 1
        self.backwards = 0
        self._expected = self._stepped or None
        self._stepped = set()
        self._without_step = 0
