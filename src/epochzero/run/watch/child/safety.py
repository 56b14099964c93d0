"""Whether the observer may look now, and what becomes of what goes wrong when it does.

Most hooks of an iteration that is not inspected only count. They must cost little, so what an inspection needs (no gradients,
no overridden functions of tensors, its time measured) is set up when it begins, not by each hook.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

MOST_FAILURES = 8
_WHILE_RESTING = frozenset({
    "end", "enters", "epoch_begins", "loader_made", "module_made", "optimizer_made", "scheduled", "scheduler_made", "loaded", "loads",
    "taken", "used",
})  # fmt: skip
_HAS_CUDA = torch.backends.cuda.is_built()  # type: ignore[no-untyped-call]


class Safety:
    """Keeps the job from noticing.

    Attributes:
        ended: whether nothing is watched any more.
        deaf: whether calls of modules are ignored.
        idle: whether this iteration or evaluation is not inspected.
        muted: above 0 while another library's training is watched in its own way.
        busy: whether a hook runs now: what it calls is not the job's.
        gradients: whether the job computes them here; hooks compute none.
        resting: one more than the steps that are still left out, while steps are; then only the last of these methods run.
        thread: the one that is watched.
        modes: how many modes of torch's dispatcher are ours.
    """

    def __init__(self, records: Records, schedule: Schedule, iterations: Iterations) -> None:
        self.ended = self.deaf = self.busy = self.gradients = self.idle = False
        self.muted = self.resting = self.modes = 0
        self.thread = threading.get_ident()
        self.schedule = schedule
        self._records = records
        self._iterations = iterations
        self._failures = 0
        self._functions: Any = None

    def may_look(self, method: str) -> bool:
        """Whether a method of the observer may do its work here."""
        if self.ended or self.busy or self.muted or _out_of_reach(self.modes):
            return False
        if threading.get_ident() == self.thread:
            return True
        # Some train in a thread of their own.
        trains = self._iterations.number or self._iterations.backwards
        if method != "backward_begins" or trains:
            return False
        self.thread = threading.get_ident()
        return True

    def rest(self, steps: int) -> None:
        """Leaves out so many steps."""
        self.resting = steps + 1
        self.deaf = self.idle = True

    def wake(self) -> None:
        """Observes again."""
        self.resting = 0
        self.deaf = False

    def inspect(self, *, inspects: bool) -> None:
        """What happens from now on is inspected, or no longer; within a hook, the rest of it."""
        self.idle = not inspects
        if self.busy and inspects:
            self.begin_inspection()

    def begin_inspection(self) -> None:
        """Nothing that a hook computes from now on is seen by the job: neither its gradients nor its tensors' classes."""
        if self._functions is None:
            self.schedule.begin()
            self._functions = torch._C.DisableTorchFunction()
            self._functions.__enter__()
            torch._C._set_grad_enabled(False)

    def end_inspection(self) -> None:
        """Everything is as it was before the inspection, if there was one."""
        if self._functions is not None:
            torch._C._set_grad_enabled(self.gradients)
            functions, self._functions = self._functions, None
            functions.__exit__(None, None, None)
            self.schedule.end()

    def failed(self, where: str, error: Exception) -> None:
        """One strange tensor is passed over; what goes on failing ends the watch."""
        self._failures += 1
        self.ended = self._failures >= MOST_FAILURES
        text = f"{type(error).__name__}: {error}"[:500]
        self._records.emit("failed", where=where, error=text, ended=self.ended)
        self._records.flush()


def safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of what has a ``safety``: nothing that goes wrong in it reaches the job.

    It answers None where it may not look, or fails.
    """
    name = method.__name__
    always = name in _WHILE_RESTING

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        safety: Safety = self.safety
        if (safety.resting and not always) or not safety.may_look(name):
            return None
        safety.busy = True
        safety.gradients = torch.is_grad_enabled()
        try:
            if not safety.idle:
                safety.begin_inspection()
            return method(self, *args, **kwargs)
        except Exception as error:
            safety.failed(name, error)
            return None
        finally:
            safety.end_inspection()
            safety.busy = False

    return guarded


def _out_of_reach(modes: int) -> bool:
    """Whether tensors have no values that may be read now, or others count what is done with them."""
    return bool(
        torch._C._len_torch_dispatch_stack() > modes
        or torch._C._functorch.peek_interpreter_stack() is not None
        or (
            _HAS_CUDA
            and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            and torch.cuda.is_current_stream_capturing()
        )
    )
