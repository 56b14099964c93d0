"""What a job says of itself reaches the journal, exactly; nothing of it can hurt the job."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.diagnose import diagnose
from epochzero.integrations.reporting import Reporter, never_raises
from epochzero.run.observers.progress_reports import ProgressFileWatcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import PROGRESS_FILE, PROGRESS_VARIABLE
from epochzero.run.records.launch import ERROR_VARIABLE
from epochzero.run.records.model import Conclusion, JobEvent, JobProgress
from tests.run.conftest import Kept
from tests.waiting import PATIENCE_S, count_calls

Run = Callable[..., subprocess.CompletedProcess[bytes]]

LOOP = """
import epochzero
epochzero.progress(phase="training", steps=300, epochs=3)
for step in range(300):
    epochzero.progress(step=step + 1, epoch=(step + 1) / 100, loss=1 / (step + 1))
    if step == 199:
        epochzero.progress(checkpoint="model.pt")
"""
FAILING = """
import epochzero
epochzero.progress(step=7)
raise ValueError("shapes (3, 4) and (5,) do not fit")
"""
RECORDED = """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
main()
"""
# torchrun ends rank 0 as soon as rank 1 has failed, which must not happen before rank 0 has reported its step.
WORKER = """
import os, pathlib, time, epochzero
def main():
    epochzero.progress(step=5 + int(os.environ["RANK"]))
    ready = pathlib.Path(__file__).with_name("ready")
    if os.environ["RANK"] == "1":
        while not ready.exists():
            time.sleep(0.05)
        raise ValueError("of rank 1")
    ready.touch()
    time.sleep(60)
main()
"""


def _last(kept: Kept) -> JobProgress:
    return [record for record in kept.records if isinstance(record, JobProgress)][-1]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a reporter of this process."""
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / PROGRESS_FILE))
    return tmp_path / PROGRESS_FILE


def _read(folder: Path) -> list[JobProgress | JobEvent]:
    watcher = ProgressFileWatcher()
    watcher.started(1, folder, Clock())
    return [record for record in watcher.ended() if isinstance(record, JobProgress | JobEvent)]


def test_a_loop_says_where_it_is(run: Run, kept: Kept) -> None:
    assert run(sys.executable, "-c", LOOP, timeout=PATIENCE_S).returncode == 0
    last = _last(kept)
    assert (last.step, last.steps, last.epoch, last.epochs) == (300, 300, 3.0, 3)
    assert (last.loss, last.checkpoint) == (1 / 300, "model.pt")
    assert kept.events["phase"].details == {"phase": "training"}


def test_without_a_supervisor_nothing_happens(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_the_error_that_ends_the_job_is_recorded_with_its_time(run: Run, kept: Kept) -> None:
    began = int(time.time())
    done = run(sys.executable, "-c", FAILING, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert b"ValueError: shapes" in done.stderr
    assert _last(kept).step == 7
    message = json.loads((kept.folder / "elastic/error.json").read_text())["message"]
    assert message["message"] == "ValueError: shapes (3, 4) and (5,) do not fit"
    assert message["extraInfo"]["py_callstack"].startswith("Traceback (most recent call last)")
    assert began <= int(message["extraInfo"]["timestamp"]) <= time.time()
    assert diagnose(str(kept.folder)).root.line is not None


def test_the_own_record_of_torchelastic_writes_without_torchrun(run: Run, kept: Kept) -> None:
    pytest.importorskip("torch", reason="torchelastic is a part of torch")
    assert run(sys.executable, "-c", RECORDED, timeout=PATIENCE_S).returncode == 1
    diagnosis = diagnose(str(kept.folder / "elastic"))
    assert diagnosis.category == "gpu_out_of_memory"


RECORD = "from torch.distributed.elastic.multiprocessing.errors import record\n@record\n"


@pytest.mark.parametrize("recording", [RECORD, ""], ids=["recorded", "plain"])
def test_the_rank_that_failed_is_known_under_torchrun(
    run: Run, kept: Kept, tmp_path: Path, recording: str
) -> None:
    pytest.importorskip("torch", reason="torchrun is a part of torch")
    script = tmp_path / "train.py"
    script.write_text(WORKER.replace("def main", f"{recording}def main"))
    words = ("-m", "torch.distributed.run", "--nproc_per_node", "2", str(script))
    assert run(sys.executable, *words, timeout=PATIENCE_S).returncode == 1
    (concluded,) = (record for record in kept.records if isinstance(record, Conclusion))
    assert concluded.diagnosis is not None
    root = concluded.diagnosis["root"]
    assert "of rank 1" in root["text"]
    assert (root["file"], root["rank"]) == ("output.log", 1)
    assert root["time"] is not None
    assert _last(kept).step == 5


def test_ranks_keep_their_errors_apart_and_only_the_first_tells(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ERROR_VARIABLE, str(told.parent / "elastic/error.json"))
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    for rank in (0, 3):
        monkeypatch.setenv("SLURM_PROCID", str(rank))
        reporter = Reporter()
        reporter.report(step=rank + 1)
        reporter.record(ValueError(f"of rank {rank}"))
    assert [record.step for record in _read(told.parent) if isinstance(record, JobProgress)] == [1]
    for rank in (0, 3):
        file = told.parent / f"elastic/rank{rank}/error.json"
        assert f"of rank {rank}" in file.read_text()


def test_a_worker_of_torchrun_writes_the_file_that_it_was_given(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = told.parent / "attempt_0/1/error.json"
    for name, value in ((ERROR_VARIABLE, file), ("TORCHELASTIC_RUN_ID", "r"), ("RANK", 1)):
        monkeypatch.setenv(name, str(value))
    Reporter().record(ValueError("mine"))
    assert "mine" in file.read_text()


def test_the_end_by_a_person_is_no_error(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ERROR_VARIABLE, str(told.parent / "error.json"))
    Reporter().record(KeyboardInterrupt())
    assert not (told.parent / "error.json").exists()


def test_steps_of_a_second_share_a_line_and_cost_a_few_calls(told: Path) -> None:
    reporter = Reporter()

    def train() -> None:
        for step in range(20_000):
            reporter.report(step=step, epoch=step / 100, loss=0.5)

    assert count_calls(train) < 20_000 * 12
    reporter.write()
    assert len(told.read_text().splitlines()) < 10
    assert [record.step for record in _read(told.parent) if isinstance(record, JobProgress)] == [
        19_999
    ]


def test_a_tensor_is_not_read(told: Path) -> None:
    class Tensor:
        def __float__(self) -> float:
            raise AssertionError("the GPU was waited for")

    reporter = Reporter()
    reporter.report(step=1, loss=Tensor())
    assert json.loads(told.read_text()) == {"step": 1}


def test_what_fails_in_a_hook_is_logged_and_training_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @never_raises
    def hook() -> None:
        raise ValueError("no such attribute")

    hook()
    hook()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_file_that_cannot_be_written_loses_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "gone" / PROGRESS_FILE))
    Reporter().report(step=1)


def test_a_torn_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    watcher = ProgressFileWatcher()
    watcher.started(1, tmp_path, Clock())
    assert list(watcher.tick()) == []
    with open(tmp_path / PROGRESS_FILE, "ab", buffering=0) as file:
        file.write(b'{"step": 1}\n{"st')
        assert [record.step for record in watcher.tick() if isinstance(record, JobProgress)] == [1]
        assert list(watcher.tick()) == []
        file.write(b'ep": 2, "steps": 9}\n')
    (record,) = watcher.tick()
    assert isinstance(record, JobProgress)
    assert (record.step, record.steps) == (2, 9)


@pytest.mark.parametrize(
    "line",
    [
        '{"step": true}', '{"step": -1}', '{"step": "3"}', '{"loss": "low"}', '{"epoch": 1e999}',
        '{"step": 99999999999999999999}', '{"other": 1}', "[1]", "null", "{", "[" * 100_000,
        '{"checkpoint": 3}', '{"epoch": ' + "9" * 400 + "}", '{"loss": ' + "9" * 400 + "}",
    ],
)  # fmt: skip
def test_what_is_no_progress_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / PROGRESS_FILE).write_text(f"{line}\n")
    assert _read(tmp_path) == []


def test_a_loss_that_is_no_number_is_told_in_strict_json(told: Path) -> None:
    for loss in (0.5, math.nan, -math.inf):
        Reporter().report(step=1, loss=loss)
    lines = [_strict(line)["loss"] for line in told.read_text().splitlines()]
    assert lines == [0.5, "nan", "-inf"]
    progress, event = sorted(_read(told.parent), key=lambda record: record.kind, reverse=True)
    assert isinstance(progress, JobProgress)
    assert isinstance(event, JobEvent)
    assert (progress.loss, event.text) == (-math.inf, "the loss is -inf")


def _strict(text: str) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    return cast(dict[str, Any], json.loads(text, parse_constant=refuse))


def test_of_a_flood_the_newest_counts(tmp_path: Path) -> None:
    lines = b"".join(b'{"step": %d}\n' % step for step in range(200_000))
    (tmp_path / PROGRESS_FILE).write_bytes(lines)
    (record,) = _read(tmp_path)
    assert isinstance(record, JobProgress)
    assert record.step == 199_999


@given(st.binary(max_size=400))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("told")
    (folder / PROGRESS_FILE).write_bytes(data)
    _read(folder)


def test_how_memory_is_saved_is_an_event_and_no_progress(tmp_path: Path) -> None:
    (tmp_path / PROGRESS_FILE).write_text('{"memory": "survives with 4 micro-batches"}\n')
    reported = ProgressFileWatcher()
    list(reported.started(1, tmp_path, Clock()))
    (event,) = (record for record in reported.tick() if isinstance(record, JobEvent))
    assert (event.what, event.text) == ("memory", "the job survives with 4 micro-batches")
    assert not list(reported.tick())
