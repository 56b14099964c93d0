"""What is made ready for a failure while the job runs, and what is read when it has failed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Conclusion
from epochzero.run.reports.failure_report import Preparation, _diagnoser
from tests.run.conftest import Kept

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_parts_of_a_log_are_no_ranks(
    run: Run, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "print('x' * 3500, flush=True)\nraise KeyError('lr')"
    assert run("--keep-output", "2KB", "--", sys.executable, "-c", code).returncode == 1
    (concluded,) = (record for record in kept.records if isinstance(record, Conclusion))
    assert concluded.diagnosis is not None
    assert concluded.diagnosis["root"]["file"].startswith("output.")
    assert concluded.diagnosis["root"]["rank"] is None


def test_much_output_has_a_diagnosis_prepared(tmp_path: Path) -> None:
    _diagnoser.cache_clear()
    preparation = Preparation()
    preparation.started(1, tmp_path, Clock())
    for size, prepared in ((1_000_000, 0), (30_000_000, 1)):
        with open(tmp_path / "output.log", "wb") as log:
            log.truncate(size)
        preparation.output("stdout", b"x\n")
        preparation.tick()
        assert _diagnoser.cache_info().currsize == prepared
