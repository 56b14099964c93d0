"""A queue of tasks of many teams, served by a few workers so that no team can delay the others for long.

The team that has used the least time is served next (start-time fair queueing; Goyal, Vin, Chen, IEEE/ACM
Transactions on Networking 5(5), 1997). A running task is not interrupted, so two rules bound the wait for one:
a team never occupies all workers, and one worker accepts only short tasks.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Task(Protocol):
    """A unit of work of a team."""

    @property
    def team(self) -> str:
        """The team that pays for it."""

    @property
    def is_short(self) -> bool:
        """Whether its next step is known to take a fraction of a second."""


_Task = TypeVar("_Task", bound=Task)


@dataclass(slots=True)
class _TeamTasks(Generic[_Task]):
    """The tasks of a team.

    Attributes:
        used: seconds of its finished tasks, on a scale shared by all teams.
        running: number of its tasks that workers are processing.
    """

    used: float
    running: int = 0
    waiting: deque[_Task] = field(default_factory=deque)


class FairQueue(Generic[_Task]):
    """The queue. Threads share one instance.

    Args:
        workers: number of workers, at least 2. Worker 0 accepts only short tasks.
    """

    def __init__(self, workers: int) -> None:
        self._most_of_team = workers - 1
        self._teams: dict[str, _TeamTasks[_Task]] = {}
        self._changed = threading.Condition()
        self._closed = False

    def put(self, task: _Task) -> None:
        """Adds a task behind those of its team.

        Raises:
            RuntimeError: the queue is closed.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("the queue is closed")
            self._of(task.team).waiting.append(task)
            self._changed.notify_all()

    def take(self, worker: int) -> _Task | None:
        """The next task for a worker, which must call `done` afterwards; None once the queue is closed."""
        with self._changed:
            while not self._closed:
                if (task := self._next(worker)) is not None:
                    return task
                self._changed.wait()
            return None

    def done(self, task: _Task, seconds: float, *, again: bool = False) -> None:
        """Charges a team for a step of a task.

        Args:
            task: from `take`.
            seconds: duration of the step.
            again: whether the task continues, before other tasks of its team.
        """
        with self._changed:
            team = self._teams[task.team]
            team.running -= 1
            team.used += seconds
            if again:
                team.waiting.appendleft(task)
            if not team.waiting and not team.running:
                del self._teams[task.team]
            self._changed.notify_all()

    def close(self) -> list[_Task]:
        """Ends all `take` calls; returns the tasks that no worker has taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            return [task for team in self._teams.values() for task in team.waiting]

    def _of(self, name: str) -> _TeamTasks[_Task]:
        if name not in self._teams:
            # A team that was idle has no credit: it starts level with the least served one.
            least = min((team.used for team in self._teams.values()), default=0.0)
            self._teams[name] = _TeamTasks(least)
        return self._teams[name]

    def _next(self, worker: int) -> _Task | None:
        fit = [
            team
            for team in self._teams.values()
            if team.waiting
            and team.running < self._most_of_team
            and (worker > 0 or team.waiting[0].is_short)
        ]
        if not fit:
            return None
        team = min(fit, key=lambda team_tasks: (team_tasks.running, team_tasks.used))
        team.running += 1
        return team.waiting.popleft()
