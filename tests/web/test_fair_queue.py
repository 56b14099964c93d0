"""Which team's task a worker gets."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from epochzero.web.fair_queue import FairQueue


@dataclass(eq=False)
class Piece:
    """A task."""

    team: str
    is_short: bool = True


def taken(queue: FairQueue[Piece], worker: int) -> Piece:
    task = queue.take(worker)
    assert task is not None
    return task


def test_teams_take_turns_however_many_tasks_one_has() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    for team in ("busy", "busy", "busy", "calm"):
        queue.put(Piece(team))
    order = []
    for _ in range(4):
        task = taken(queue, 1)
        order.append(task.team)
        queue.done(task, 1.0)
    assert order == ["busy", "calm", "busy", "busy"]


def test_the_team_that_used_less_time_is_next() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    for team in ("busy", "calm", "busy", "calm", "calm"):
        queue.put(Piece(team))
    seconds = {"busy": 10.0, "calm": 1.0}
    order = []
    for _ in range(5):
        task = taken(queue, 1)
        order.append(task.team)
        queue.done(task, seconds[task.team])
    assert order == ["busy", "calm", "calm", "calm", "busy"]


def test_a_team_never_has_all_workers() -> None:
    queue: FairQueue[Piece] = FairQueue(3)
    for _ in range(3):
        queue.put(Piece("busy"))
    taken(queue, 1), taken(queue, 2)
    calm = Piece("calm")
    threading.Timer(0.05, queue.put, [calm]).start()
    assert queue.take(0) is calm  # It has waited, although a task of the other team waits too.


def test_one_worker_accepts_only_short_tasks() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    queue.put(Piece("busy", is_short=False))
    short = Piece("calm")
    queue.put(short)
    assert queue.take(0) is short
    assert not taken(queue, 1).is_short


def test_a_task_that_continues_stays_before_those_of_its_team() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    first, second = Piece("busy"), Piece("busy")
    queue.put(first)
    queue.put(second)
    queue.done(taken(queue, 1), 0.25, again=True)
    assert queue.take(1) is first


def test_an_idle_team_saves_up_no_time() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    for _ in range(4):
        queue.put(Piece("busy"))
    for _ in range(3):
        queue.done(taken(queue, 1), 5.0)
    for _ in range(4):
        queue.put(Piece("late"))
    order = []
    for _ in range(3):
        task = taken(queue, 1)
        order.append(task.team)
        queue.done(task, 5.0)
    assert order == ["busy", "late", "late"]


def test_workers_end_when_it_is_closed() -> None:
    queue: FairQueue[Piece] = FairQueue(2)
    left = Piece("busy")
    queue.put(left)
    assert queue.close() == [left]
    assert queue.take(1) is None
