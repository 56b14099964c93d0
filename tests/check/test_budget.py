"""A rule that runs away is stopped, and costs only its own answer."""

from __future__ import annotations

import re
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.check import check, pipeline
from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.rule import Claims
from epochzero.check.rules import engine, find
from epochzero.check.rules.budget import TimeExceeded, at_most
from epochzero.check.target.model import Target
from epochzero.check.view.job import JobView


def _for_ever() -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:  # what stops it is none of the errors that a rule expects
            continue


def test_python_code_and_regular_expressions_are_stopped() -> None:
    with pytest.raises(TimeExceeded), at_most(0.05):
        _for_ever()
    with pytest.raises(TimeExceeded), at_most(0.05):
        re.match(r"(a+)+$", "a" * 40 + "b")


def test_what_was_there_before_is_there_again() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with at_most(5):
        pass
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_another_thread_work_is_done_without_a_limit() -> None:
    done = []

    def work() -> None:
        with at_most(0.001):
            done.append(sum(range(300_000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_a_rule_that_runs_away_is_unknown_and_the_next_one_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(_: JobView) -> Claims:
        yield Unknown("runaway", "it has begun", SourceLocation("train.py"))
        _for_ever()

    rules = (replace(find("syntax-error"), id="runaway", check=endless), find("undefined-name"))
    monkeypatch.setattr(pipeline, "choose", lambda *given: rules)
    monkeypatch.setattr(engine, "RULE_S", 0.1)
    (tmp_path / "train.py").write_text("print(undefined)\n")
    found = check(["python", "train.py"], Target("a platform"), folder=tmp_path)
    assert [one.rule for one in found.findings] == ["undefined-name"]
    assert {one.reason for one in found.unknowns} == {"it has begun", "stopped after 0.1 s"}


def test_rules_for_which_no_time_is_left_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RULES_S", 0.0)
    (tmp_path / "train.py").write_text("print(undefined)\n")
    found = check(
        ["python", "train.py"], Target("a platform"), folder=tmp_path, select=["undefined-name"]
    )
    assert not found.findings
    assert [one.reason for one in found.unknowns] == ["not run: the preceding rules took 0 s"]
