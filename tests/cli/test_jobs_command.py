"""``epochzero jobs``, ``show`` and ``export``, over journals as runs leave them."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochzero.cli import layout
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import Conclusion, End, JobEvent, Record
from tests.store.jobs import START, Runs, started, whole

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EPOCHZERO_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "home"


@pytest.fixture
def kept(home: Path) -> Runs:
    """A job that failed, one that ended well after a retry, and one that runs."""
    runs = Runs(home / "runs")
    runs.write(whole("aa1", name="resnet"))
    runs.write(whole("aa2", name="bert", time=START + 5000))
    runs.write(whole("aa2", 2, exit_code=0, name="bert", time=START + 9000))
    runs.write([started("bb3", name="gpt", time=time.time() - 60)])
    return runs


def test_jobs_lists_what_was_run_the_newest_first(run: Command, kept: Runs) -> None:
    done = run("jobs")
    assert done.code == 0
    head, *rows = done.out.splitlines()
    assert head.split()[:4] == ["JOB", "NAME", "STATE", "STARTED"]
    assert [row.split()[:3] for row in rows] == [
        ["bb3", "gpt", "running"],
        ["aa2", "bert", "succeeded"],
        ["aa1", "resnet", "failed"],
    ]
    assert "30 min 00 s" in rows[2]
    assert rows[2].endswith("Key Not Found")


def test_jobs_filters_and_speaks_json(run: Command, kept: Runs) -> None:
    (job,) = json.loads(run("jobs", "--state", "failed", "--format", "json").out)
    assert (job["id"], job["category"], job["gpu_hours"]) == ("aa1", "key_not_found", 4.0)
    lines = run("jobs", "--since", "1h", "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["bb3"]


def test_a_job_that_was_ended_for_its_training_names_the_fault(run: Command, home: Path) -> None:
    records = [one for one in whole("dd4", exit_code=79) if not isinstance(one, Conclusion | End)]
    end = START + 1800
    details = {"word": "zero_grad_missing"}
    event = JobEvent(end, 1800.0, "ended_by_watch", "the training was ended", details=details)
    Runs(home / "runs").write([*records, event, End(end, 1800.0, 79, None, "watch")])
    assert run("jobs").out.splitlines()[1].endswith("watch: zero_grad_missing")
    wanted = ("--category", "zero_grad_missing", "--format", "json")
    assert [job["id"] for job in json.loads(run("jobs", *wanted).out)] == ["dd4"]


def test_a_job_that_hangs_is_marked_until_it_makes_progress_again(run: Command, home: Path) -> None:
    text = "no progress for 300 s: rank 1 waits at train.py:7 (`get`) since 12:00:00"
    now = time.time()
    first = started("ff6", name="gpt", time=now - 600)
    hang = JobEvent(now - 200, 400.0, "stall", text, rank=1)
    over = JobEvent(now - 100, 500.0, "stall_over", "the job makes progress again after 400 s")
    path = Runs(home / "runs").write([first, hang])

    def append(record: Record) -> None:
        journal = Journal(path.parent)
        journal.write(record)
        journal.close()

    row = run("jobs").out.splitlines()[1]
    assert row.split()[:3] == ["ff6", "gpt", "hung"]
    assert row.endswith("rank 1 waits at train.py:7 (`get`) since 12:00:00")
    shown = run("show", "ff6").out
    assert shown.startswith("HUNG  gpt")
    assert "Hang " in shown
    assert text in " ".join(shown.split())
    (job,) = json.loads(run("jobs", "--state", "running", "--format", "json").out)
    assert (job["state"], job["hung"]) == ("running", text)
    append(over)
    assert run("jobs").out.splitlines()[1].split()[2] == "running"
    assert run("show", "ff6").out.startswith("RUNNING  gpt")
    append(hang)
    assert run("jobs").out.splitlines()[1].split()[2] == "hung"
    append(End(now, 600.0, 137, 9, "user"))
    assert run("jobs").out.splitlines()[1].split()[2] != "hung"


def test_a_state_that_no_job_has_is_told_with_those_there_are(run: Command, kept: Runs) -> None:
    done = run("jobs", "--state", "ended")
    assert done.code == 2
    assert "'running', 'succeeded', 'failed', 'cancelled', 'lost'" in done.err


def test_a_job_of_which_only_an_ended_rank_is_known_has_failed(run: Command, home: Path) -> None:
    rank = End(START + 9, 9.0, 143, 15, "another_rank")
    Runs(home / "runs").write([started("ee5", rank=1, world_size=2), rank])
    (job,) = json.loads(run("jobs", "--format", "json").out)
    assert job["state"] == "failed"


def test_jobs_of_an_empty_home_says_how_to_begin(
    run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # What takes the place of a home that cannot be written.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = run("jobs")
    assert (done.code, done.out) == (0, "")
    assert "epochzero run" in done.err
    assert "No matching job" in run("jobs", "--state", "lost").err


def test_a_time_that_is_none_is_told(run: Command) -> None:
    done = run("jobs", "--since", "yesterday")
    assert done.code == 2
    assert "write 7d" in done.err


def test_a_store_that_cannot_be_opened_is_told(run: Command, tmp_path: Path) -> None:
    done = run("jobs", "--store", tmp_path / "none" / "x.db")
    assert done.code == 2
    assert "unable to open" in done.err


def test_show_is_one_screen_about_a_job(run: Command, kept: Runs) -> None:
    out = run("show", "resnet").out
    assert out.startswith("FAILED  resnet")
    for part in (
        "python train.py",
        "8 GPUs, 4 GPU hours",
        "epoch 1, step 120 of 1000, loss 0.5",
        "Key Not Found",
        "KeyError: 'lr'",
        "train.py:7  key-missing",
        "stop (auto): It fails again.",
        "No output for 300 s.",
        "Looked at. (bea)",
    ):
        assert part in out
    assert len(out.splitlines()) < 40


def test_show_tells_the_attempts_apart(run: Command, kept: Runs) -> None:
    out = run("show", "aa2").out
    assert "Attempt 1  failed, 30 min 00 s, exit code 1" in out
    assert "Attempt 2  succeeded" in out


def test_show_speaks_json_and_prints_the_log(run: Command, kept: Runs) -> None:
    told = json.loads(run("show", "aa1", "--format", "json").out)
    assert told["schema"] == "epochzero.job/1"
    assert run("show").out.startswith("RUNNING  gpt")
    assert run("show", "aa1", "--log").out == "hello\nworld\n"
    missing = run("show", "aa1", "--rank", "7")
    assert missing.code == 2
    assert "no log 'rank7': there are output" in missing.err


def test_show_of_what_is_not_there(run: Command, kept: Runs) -> None:
    assert "several job IDs start with 'aa'" in run("show", "aa").err
    assert run("show", "zz").code == 2


def test_a_hostile_job_cannot_move_the_terminal(run: Command, home: Path) -> None:
    Runs(home / "runs").write([started("cc4", name="a\x1b[2Jb", folder="\x1b]0;x\x07")])
    assert "\x1b" not in run("jobs").out
    assert "\x1b" not in run("show", "cc4").out


def test_export_writes_a_file_a_table(run: Command, kept: Runs, tmp_path: Path) -> None:
    done = run("export", tmp_path / "out", "--state", "failed")
    assert done.code == 0
    (failure,) = (tmp_path / "out" / "failures.jsonl").read_text().splitlines()
    assert json.loads(failure)["job_id"] == "aa1"
    assert json.loads(failure)["diagnosis"]["category"] == "key_not_found"
    samples = (tmp_path / "out" / "samples.jsonl").read_text().splitlines()
    assert len(samples) == 10


def test_export_as_csv_can_be_read_again(run: Command, kept: Runs, tmp_path: Path) -> None:
    run("export", tmp_path / "out", "--format", "csv")
    with open(tmp_path / "out" / "jobs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["aa1", "aa2", "bb3"]
    assert json.loads(rows[0]["command"]) == ["python", "train.py"]


def test_export_as_parquet(run: Command, kept: Runs, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet requires pyarrow")
    run("export", tmp_path / "out", "--format", "parquet")
    table = parquet.read_table(tmp_path / "out" / "samples.parquet")
    assert table.num_rows == 30


def test_export_to_where_nothing_can_be_written(run: Command, kept: Runs, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("export", tmp_path / "file" / "out")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_prune_says_what_it_would_do_and_does_it(run: Command, kept: Runs) -> None:
    would = run("jobs", "prune", "--older", "0m", "--dry-run").out
    assert would.startswith("Would delete logs and samples of 2 jobs")
    assert run("show", "aa1", "--log").code == 0
    assert run("jobs", "prune", "--older", "0m", "--keep-failed").out.startswith("Deleted")
    assert run("show", "aa1", "--log").out == "hello\nworld\n"
    assert run("show", "aa2", "--log").code == 2
    assert not (kept.folder / "aa2" / "1").exists()
    assert (kept.folder / "bb3" / "1").exists()


def test_jobs_that_were_pruned_whole_do_not_come_again(run: Command, kept: Runs) -> None:
    assert run("jobs", "prune", "--older", "0m", "--whole").out.startswith("Deleted 2 jobs")
    assert [job["id"] for job in json.loads(run("jobs", "--format", "json").out)] == ["bb3"]


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (86, "86 B"), (1190, "1.19 kB"), (3.2e8, "320 MB")]
)
def test_small_sizes_are_bytes(count: float, said: str) -> None:
    assert layout.size(count) == said
