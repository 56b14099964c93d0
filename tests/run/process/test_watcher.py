"""Watchers see the job and leave records; what they do wrong never touches it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from epochzero.run.process import supervisor as supervise
from epochzero.run.process.supervisor import run_attempt
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.journal import Journal, read_journal
from epochzero.run.records.model import End, JobEvent, Note, Record, Start


class Seeing:
    """Notes all that it is told."""

    def __init__(self) -> None:
        self.saw: list[str] = []
        self.data = b""

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        self.saw.append(f"started {folder.name} {Path(f'/proc/{pid}').exists()}")
        return [Note(*clock.now(), "seen")]

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        self.data += name.encode() + b":" + data
        return ()

    def tick(self) -> Iterable[Record]:
        self.saw.append("tick")
        return ()

    def ended(self) -> Iterable[Record]:
        self.saw.append("ended")
        return ()


class Failing(Seeing):
    """Raises at the first sight of output."""

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        raise ValueError("bad output")


class Slow(Seeing):
    """Never comes back."""

    def tick(self) -> Iterable[Record]:
        time.sleep(3600)
        return ()


class Terminating(Seeing):
    """SIGTERM comes when the job has ended, as from torchrun, which has seen another rank fail."""

    def ended(self) -> Iterable[Record]:
        os.kill(os.getpid(), signal.SIGTERM)
        return ()


def _run(folder: Path, script: str, *watchers: Watcher) -> tuple[End, list[Record]]:
    folder = folder / "attempt"
    journal = Journal(folder)
    command = ("sh", "-c", script)
    started = Start("j", 1, "sh", command, os.getcwd(), "node", "ann", os.getpid(), time.time())
    ended = run_attempt(started, folder, journal, environment=dict(os.environ), watchers=watchers)
    journal.close()
    return ended, [record for _, record in read_journal(journal.path)]


def test_a_watcher_sees_the_job(tmp_path: Path) -> None:
    watcher = Seeing()
    ended, records = _run(tmp_path, "echo one; sleep 1.3; echo two >&2", watcher)
    assert ended.exit_code == 0
    assert list(dict.fromkeys(watcher.saw)) == ["started attempt True", "tick", "ended"]
    assert watcher.data == b"stdout:one\nstderr:two\n"
    assert [record.text for record in records if isinstance(record, Note)] == ["seen"]
    assert records[-1] == ended


def test_a_failing_or_slow_watcher_never_touches_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "_WATCHERS_S", 0.3)
    ended, records = _run(tmp_path, "echo one; sleep 1.3; exit 4", Failing(), Slow())
    assert ended.exit_code == 4
    events = {record.what: record.text for record in records if isinstance(record, JobEvent)}
    assert events["watcher_failed"] == "Failing failed: ValueError: bad output"
    assert "Slow" in events["watcher_slow"]


def test_a_signal_after_the_end_of_the_job_does_not_cost_its_last_record(
    tmp_path: Path,
) -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        ended, records = _run(tmp_path, "exit 4", Terminating())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert records[-1] == ended
    assert came == []  # The default handler would have ended this process.


def test_elapsed_time_does_not_follow_a_clock_that_goes_backwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: before[0] - 3600)
    after = clock.now()
    assert after[0] < before[0]
    assert after[1] >= before[1]
