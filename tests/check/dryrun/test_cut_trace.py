"""Whether a trace that the time limit cut off still shows how much memory the job needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan
from epochzero.check.dryrun.contain import best_containment
from epochzero.check.dryrun.contain.model import Exit
from epochzero.check.dryrun.gpu_memory import trace_of_run
from epochzero.check.dryrun.memory.trace import Trace
from epochzero.check.dryrun.records import AllocationRecord, EndRecord, SkipRecord
from epochzero.check.launch.model import Job

FINISHED = Exit("", 0, "", "", 1.0, 0, "", 0, (), 0, (), 0, best_containment())
ACCUMULATED = ("backward done", "backward done")
ONE_STEP = ("backward done", "step 1")


def traced(*marks: str, cut: bool = True) -> Trace | str:
    """Return the trace of a script that finished, although the time limit may have ended its loop."""
    lines = ({"a": 0, "n": 1 << 20, "w": -1}, *({"m": mark} for mark in marks))
    loop = SkipRecord("train.py", 9, total=250, work=True, cut=cut)
    run = DryRunAttempt(DryRunPlan("fake"), FINISHED, (loop, AllocationRecord(lines), EndRecord()))
    return trace_of_run(run, Job((), Path("train.py"), "", Path()))


@pytest.mark.parametrize("marks", [ACCUMULATED, ONE_STEP])
def test_memory_is_unknown_if_the_loop_was_cut_before_the_second_step(marks: tuple[str]) -> None:
    assert "second step" in str(traced(*marks))


@pytest.mark.parametrize("marks", [(), (*ONE_STEP, "backward done")])
def test_memory_is_known_of_inference_and_of_two_steps(marks: tuple[str]) -> None:
    assert isinstance(traced(*marks), Trace)


def test_a_job_of_one_step_needs_no_second() -> None:
    assert isinstance(traced(*ONE_STEP, cut=False), Trace)
