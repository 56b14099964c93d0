"""Where an iteration ends, for loops of different shapes."""

from __future__ import annotations

from epochzero.injected.iterations import WITHOUT_STEP, Iterations

ONE, OTHER = object(), object()


class Training:
    """Tells what a loop does; `ended` has the number of each iteration at its end."""

    def __init__(self, *optimizers: object) -> None:
        self.iterations = Iterations()
        self.optimizers = optimizers
        self.ended: list[int] = []

    def _when(self, ended: bool) -> None:
        if ended:
            self.ended.append(self.iterations.number)
            self.iterations.next()

    def forward(self, *, cleared: bool = False) -> None:
        self._when(self.iterations.model_called(lambda: cleared))

    def backward(self) -> None:
        self.iterations.backward_begins()
        self._when(self.iterations.backward_ended())

    def step(self, optimizer: object) -> None:
        self._when(self.iterations.has_stepped(optimizer))
        self.iterations.step_begins()
        self._when(self.iterations.step_ended(optimizer, self.optimizers))


def test_a_step_ends_it_after_as_many_backward_passes_as_there_are() -> None:
    training = Training(ONE)
    for passes in (1, 4, 2):
        for _ in range(passes):
            training.forward()
            training.backward()
        assert training.iterations.backwards == passes
        training.step(ONE)
    assert training.ended == [0, 1, 2]
    assert training.iterations.steps == 3


def test_of_several_optimizers_each_steps_once() -> None:
    training = Training(ONE, OTHER)
    for _ in range(2):
        training.backward()
        training.step(ONE)
        training.backward()
        training.step(OTHER)
    assert training.ended == [0, 1]


def test_an_optimizer_that_rests_is_not_waited_for() -> None:
    training = Training(ONE, OTHER)
    for _ in range(3):
        training.backward()
        training.step(ONE)
    assert training.ended == [0, 1, 2]
    assert training.iterations.stepped == 0


def test_without_a_step_cleared_gradients_or_many_passes_end_it() -> None:
    training = Training()
    training.backward()
    training.forward(cleared=False)
    training.backward()
    assert training.ended == []
    training.forward(cleared=True)
    assert training.ended == [0]
    for _ in range(WITHOUT_STEP):
        training.backward()
    assert training.ended == [0, 1]


def test_what_a_closure_calls_is_of_the_step() -> None:
    training = Training(ONE)
    training.iterations.step_begins()
    training.forward(cleared=True)
    training.backward()
    training.forward(cleared=True)
    training.backward()
    assert training.ended == []
    assert training.iterations.in_step
