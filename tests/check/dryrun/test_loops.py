"""Loops of the user's code, shortened: which iterations run, and that the rest stays as it was."""

from __future__ import annotations

import ast
import builtins
import os
import traceback
from collections.abc import Iterator
from itertools import islice
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.child.emit import RecordPipe
from epochzero.check.dryrun.child.loops import OutOfTime, Runtime
from epochzero.check.dryrun.child.rewrite import RUNTIME, rewritten


@pytest.fixture(autouse=True)
def runtime() -> Iterator[Runtime]:
    """The runtime that rewritten code finds, with time enough."""
    reading, writing = os.pipe()
    made = Runtime(RecordPipe(writing), 60.0, patience=0.0)
    setattr(builtins, RUNTIME, made)
    yield made
    delattr(builtins, RUNTIME)
    os.close(reading)
    os.close(writing)


class Seen(list[Any]):
    """What was appended and nothing else: no list that a loop left short is filled."""


def run(source: str, runtime: Runtime, **names: Any) -> dict[str, Any]:
    """Runs a script whose function ``work`` is what a training step is."""

    def work() -> None:
        runtime.work += 1

    found: dict[str, Any] = {"__file__": "job.py", "work": work, "seen": Seen(), **names}
    tree = rewritten(ast.parse(dedent(source)))
    exec(compile(tree, "job.py", "exec"), found)
    return found


def seen(source: str, runtime: Runtime, **names: Any) -> list[Any]:
    """What the script appended to ``seen``."""
    return list(run(source, runtime, **names)["seen"])


def test_a_loop_that_works_runs_its_first_iterations_and_its_last(runtime: Runtime) -> None:
    loop = "for i in range(1000): work(); seen.append(i)"
    assert seen(loop, runtime) == [0, 1, 999]
    assert runtime.skipped


def test_a_loop_without_work_runs_whole(runtime: Runtime) -> None:
    assert seen("for i in range(1000): seen.append(i)", runtime) == list(range(1000))
    assert not runtime.skipped


def test_a_short_loop_runs_whole(runtime: Runtime) -> None:
    assert seen("for fold in range(5): work(); seen.append(fold)", runtime) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("(epoch + 1) % 25 == 0", 24),
        ("epoch == total // 2", 50),
        ("epoch >= warmup", 12),
        ("epoch % args['every'] == 0 and epoch > 0", 30),
        ("rank() == 0 and epoch == 77", 77),
        ("not epoch < 40", 40),
        ("len(items) < epoch", 8),
    ],
)
def test_a_test_of_the_body_is_seen_both_ways(runtime: Runtime, test: str, wanted: int) -> None:
    source = f"""
        for epoch in range(total):
            work()
            seen.append(epoch)
            if {test}:
                saved = epoch
    """
    names = {"total": 100, "warmup": 12, "args": {"every": 30}, "rank": int, "items": "abcdefg"}
    found = run(source, runtime, **names)
    assert wanted in found["seen"]
    assert found["seen"][-1] == 99
    assert len(found["seen"]) <= 6


def test_a_value_derived_from_the_variable_is_followed(runtime: Runtime) -> None:
    source = """
        for epoch in range(300):
            work()
            is_last = epoch == 299 - 1
            if is_last:
                seen.append(epoch)
    """
    assert seen(source, runtime) == [298]


def test_a_counter_is_advanced_over_what_is_left_out(runtime: Runtime) -> None:
    source = """
        step = 0
        for batch in range(1000):
            work()
            step += 1
            if step % 300 == 0:
                seen.append(step)
    """
    found = run(source, runtime)
    assert found["seen"] == [300]
    assert found["step"] == 1000


def test_a_counter_under_a_test_is_advanced_as_often_as_the_test_holds(runtime: Runtime) -> None:
    loop = """\
    stage = late = 0
    for epoch in range(1000):
        work()
        if (epoch + 1) % 3 == 0:
            stage += 1
        if epoch > 899:
            late += 2
    seen.append((stage, late))
    """
    assert seen(loop, runtime) == [(333, 200)]
    assert runtime.skipped


@pytest.mark.parametrize("counter", ["step", "self.step"])
def test_a_counter_of_a_loop_within_is_advanced_over_what_is_left_out(
    runtime: Runtime, counter: str
) -> None:
    source = f"""
        from types import SimpleNamespace
        self = SimpleNamespace()
        {counter} = 0
        for epoch in range(1000):
            for batch in range(4):
                work()
                {counter} += 1
            seen.append({counter})
        """
    assert seen(source, runtime) == [4, 8, 4000]


def test_a_counter_that_each_iteration_resets_is_left_alone(runtime: Runtime) -> None:
    source = """
        for epoch in range(1000):
            step = 0
            for batch in range(4):
                work()
                step += 1
            seen.append(step)
        """
    assert seen(source, runtime) == [4, 4, 4]


def test_episodes_of_different_lengths_run_to_the_number_of_steps(runtime: Runtime) -> None:
    source = """
        step, lengths = 0, [3, 9, 6]
        while step < 100_000:
            left = lengths[len(seen) % 3]
            while left > 0:
                work()
                step += 1
                left -= 1
            seen.append(step)
        """
    steps = seen(source, runtime)
    assert steps[:2] == [3, 12]
    assert 100_000 <= steps[-1] < 100_009
    assert len(steps) < 10


def test_a_while_loop_goes_to_its_end(runtime: Runtime) -> None:
    source = """
        step = 0
        while step < 5000:
            work()
            step += 1
            if step % 1000 == 0:
                seen.append(step)
        else:
            seen.append("else")
    """
    found = run(source, runtime)
    assert found["seen"] == [1000, 5000, "else"]
    assert found["step"] == 5000


def test_an_endless_loop_is_left_by_its_own_break(runtime: Runtime) -> None:
    source = """
        step = 0
        while True:
            work()
            step += 1
            if step >= 10**5 - 1:
                break
    """
    assert run(source, runtime)["step"] == 99_999


def test_an_endless_loop_without_a_way_out_ends_with_the_time(runtime: Runtime) -> None:
    runtime._seconds = 0.2
    with pytest.raises(OutOfTime):
        run("while True: work()", runtime)


def test_a_number_of_enumerate_is_advanced(runtime: Runtime) -> None:
    source = """
        for i, batch in enumerate(iter("abcdefgh" * 50), start=1):
            work()
            if i % 100 == 0:
                seen.append((i, batch))
    """
    assert seen(source, runtime) == [(100, "c")]


def test_an_enumerate_of_the_users_own_is_left_alone(runtime: Runtime) -> None:
    source = """
        def enumerate(items): return [("mine", item) for item in items]
        for name, item in enumerate("ab"): seen.append(name)
    """
    assert seen(source, runtime) == ["mine", "mine"]


def test_a_comprehension_is_shortened(runtime: Runtime) -> None:
    got = run("got = [work() or i for i in range(50)]", runtime)["got"]
    assert got == [0, *[1] * 48, 49]


def test_what_feeds_a_consumer_is_not_shortened(runtime: Runtime) -> None:
    source = """
        def forever():
            while True:
                for i in range(7):
                    work()
                    yield i
        seen.extend(islice(forever(), 20))
    """
    assert seen(source, runtime, islice=islice) == [number % 7 for number in range(20)]


def test_a_loop_in_a_model_is_part_of_it(runtime: Runtime) -> None:
    runtime.depth = 1
    assert len(seen("for i in range(50): work(); seen.append(i)", runtime)) == 50


def test_loops_of_a_class_body_bind_nothing_more(runtime: Runtime) -> None:
    source = """
        class Names:
            for name in "ab": pass
            def letters(self): return [letter for letter in "xy"]
        seen.append(sorted(n for n in vars(Names) if not n.startswith("_")))
        seen.append(Names().letters())
    """
    assert seen(source, runtime) == [["letters", "name"], ["x", "y"]]


def test_a_loop_that_is_quick_runs_whole(runtime: Runtime) -> None:
    runtime.patience = 0.5
    assert len(seen("for i in range(1000): work(); seen.append(i)", runtime)) == 1000
    assert not runtime.skipped


def test_lines_of_an_error_stay_those_of_the_user(runtime: Runtime) -> None:
    source = "step = 0\nfor i in range(9):\n    step += 1\n    if i == 7:\n        1 / 0\n"
    with pytest.raises(ZeroDivisionError) as error:
        run(source, runtime)
    assert traceback.extract_tb(error.value.__traceback__)[-1].lineno == 5


def test_time_ends_a_loop_that_works(runtime: Runtime) -> None:
    runtime._seconds = 1.0
    source = """
        import time
        for i in range(10**6):
            work()
            seen.append(i)
            time.sleep(0.8)
    """
    assert seen(source, runtime) == [0]


def test_a_loop_that_the_time_cuts_off_is_not_reported_as_run(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(runtime.records, "emit", lambda kind, **values: told.append(values))
    source = """
        for i in range(100):
            work()
    """
    run(source, runtime)
    assert [record["cut"] for record in told] == [False]
    runtime._began -= 0.8 * runtime._seconds
    run(source, runtime)
    assert [record["cut"] for record in told] == [False, True]


@given(
    st.lists(st.integers(), max_size=30),
    st.sampled_from(["break", "continue", "pass", "if item > 3: break", "total -= 1"]),
)
def test_loops_without_work_mean_what_they_meant(items: list[int], body: str) -> None:
    source = f"""
total = 0
for place, item in enumerate(items):
    total += item
    {body}
    seen.append((place, item))
else:
    seen.append("else")
while items:
    total += items.pop()
got = {{item for item in seen}}
"""
    names = {"items": list(items), "seen": []}
    wanted = {"items": list(items), "seen": []}  # type: dict[str, Any]
    exec(source, wanted)
    reading, writing = os.pipe()
    setattr(builtins, RUNTIME, Runtime(RecordPipe(writing), 60.0, patience=0.0))
    found = {"__file__": "job.py", **names}
    exec(compile(rewritten(ast.parse(source)), "job.py", "exec"), found)
    os.close(reading)
    os.close(writing)
    for name in ("seen", "total", "got", "items"):
        assert found[name] == wanted[name]


class LRScheduler:
    """As torch's schedulers count, with an end."""

    def __init__(self, total: int) -> None:
        self.last_epoch, self.total = 0, total

    def step(self) -> None:
        """One step; none after the last."""
        self.last_epoch += 1
        if self.last_epoch > self.total:
            raise ValueError("no step is left")


STEPPING = """
def epoch():
    for batch in range(50):
        work()
        schedule.step()
for number in range(30):
    epoch()
"""


def test_a_scheduler_is_stepped_over_what_is_left_out(runtime: Runtime) -> None:
    schedule = LRScheduler(30 * 50)
    run(STEPPING, runtime, schedule=schedule)
    assert schedule.last_epoch == 30 * 50
    assert runtime.taken < 100


def test_one_step_too_many_is_raised_at_the_users_line(runtime: Runtime) -> None:
    with pytest.raises(ValueError, match="no step is left") as raised:
        run(STEPPING, runtime, schedule=LRScheduler(30 * 50 - 1))
    assert traceback.extract_tb(raised.value.__traceback__)[-2].lineno == 5


def test_a_scheduler_with_an_end_is_at_its_end_after_any_number_of_steps(runtime: Runtime) -> None:
    class OneCycle(LRScheduler):
        total_steps = 10**9

    schedule = OneCycle(10**9)
    run("for step in range(10**9): work(); schedule.step()", runtime, schedule=schedule)
    assert schedule.last_epoch == 10**9


def test_a_scheduler_that_is_stepped_now_and_then_is_left_alone(runtime: Runtime) -> None:
    schedule = LRScheduler(12)
    loop = """
    for batch in range(100):
        work()
        if batch % 8 == 7:
            schedule.step()
    """
    run(loop, runtime, schedule=schedule)
    assert 0 < schedule.last_epoch <= 12


def test_steps_of_an_earlier_loop_are_not_those_of_an_iteration(runtime: Runtime) -> None:
    schedule = LRScheduler(30 * 13)
    loop = """
    for epoch in range(30):
        for batch in range(100):
            work()
            if batch % 8 == 7 or batch == 99:
                noticed(schedule)
                schedule.step()
    """
    run(loop, runtime, schedule=schedule, noticed=runtime.steps_scheduler)
    assert 0 < schedule.last_epoch <= 30 * 13


def test_steps_that_a_loop_within_takes_on_a_condition_are_counted(runtime: Runtime) -> None:
    schedule = LRScheduler(40 * 2 - 1)
    loop = """
    def backward(index):
        work()
        if (index + 1) % 4 == 0 or index == 4:
            noticed(schedule)
            schedule.step()
    for epoch in range(40):
        for index in range(5):
            backward(index)
    """
    with pytest.raises(ValueError, match="no step is left"):
        run(loop, runtime, schedule=schedule, noticed=runtime.steps_scheduler)
    assert runtime.taken < 40


def test_what_is_seen_often_runs_more_iterations(runtime: Runtime) -> None:
    runtime.often = 2
    loop = "for i in range(1000):\n    work(); seen.append(i)\n    if (i + 1) % 100 == 0: pass"
    assert seen(loop, runtime) == [0, 1, 2, 99, 199, 999]


def test_a_scheduler_is_stepped_in_a_hurry_too(runtime: Runtime) -> None:
    runtime._began -= 0.6 * runtime._seconds
    schedule = LRScheduler(30 * 50)
    run(STEPPING, runtime, schedule=schedule)
    assert schedule.last_epoch == 30 * 50


class NothingKept:
    """The trace of a pretended GPU on which nothing is allocated."""

    taken = 0

    def lives(self, first: int, end: int) -> bool:
        return False


@pytest.mark.parametrize("pretended", [True, False])
@pytest.mark.parametrize(
    "made",
    [
        "[called(i) for i in range(100)]",
        "list(called(i) for i in range(100))",
        "list(map(called, range(100)))",
        "[row[0] for row in [[called(i) for j in 'a'] for i in range(100)]]",
    ],
)
def test_a_comprehension_is_as_long_as_it_would_be(
    runtime: Runtime, made: str, pretended: bool
) -> None:
    def called(number: int) -> int:
        runtime.work += 1
        return number

    runtime.trace = NothingKept() if pretended else None
    found = run(f"made = {made}", runtime, called=called)["made"]
    assert found == [0, *[1] * 98, 99]
    assert runtime.skipped


def test_a_list_that_a_loop_adds_to_is_as_long_as_it_would_be(runtime: Runtime) -> None:
    source = """
        got, pairs = [], []
        for i in range(1000):
            work()
            got.append(i)
            pairs.extend([i, -i])
            if i == 500: pass
    """
    found = run(source, runtime)
    assert found["got"] == [0, *[1] * 499, 500, *[500] * 498, 999]
    assert len(found["pairs"]) == 2000


@pytest.mark.parametrize("name", ["kept", "self.kept"])
def test_a_list_that_a_loop_adds_to_under_a_test_is_as_long_as_it_would_be(
    runtime: Runtime, name: str
) -> None:
    script = f"""
        from types import SimpleNamespace
        self, kept, every = SimpleNamespace(kept=[]), [], []
        for i in range(100):
            work()
            every.append(i)
            if i % 7 == 0:
                {name}.append(i)
            if seen is None:
                every.append(i)
        made = {name}
    """
    found = run(script, runtime)
    assert (len(found["made"]), len(found["every"])) == (15, 100)
    assert found["made"][:1] == [0]
    assert found["made"][-1] <= 98


def test_true_values_that_take_much_memory_are_not_made_more(runtime: Runtime) -> None:
    class Output:
        nbytes = 1 << 20

    source = """
        got = []
        for i in range(1000):
            work()
            got.append(Output())
        made = [work() or Output() for i in range(1000)]
    """
    found = run(source, runtime, Output=Output)
    assert (len(found["got"]), len(found["made"])) == (3, 3)


def test_a_comprehension_that_leaves_items_out_is_not_made_longer(runtime: Runtime) -> None:
    runtime.trace = NothingKept()
    found = run("made = [i for i in range(100) if not work()]", runtime)
    assert found["made"] == [0, 1, 99]


def test_another_map_is_called_as_it_is(runtime: Runtime) -> None:
    found = run("made = map(int, '12')", runtime, map=lambda call, items: (call, items))
    assert found["made"] == (int, "12")
