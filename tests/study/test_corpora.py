"""Reading failures from files, folders and stores; what cannot be used is counted, not guessed."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochzero import taxonomy
from epochzero.diagnose import Diagnoser
from epochzero.errors import InputError
from epochzero.store.database import open_database
from epochzero.store.queries import JobFilter
from epochzero.store.recorder import sweep
from epochzero.study import read_database, read_file, read_folder, study_failures
from tests.store.jobs import START, Runs, whole
from tests.waiting import bounded_work

LOG = (
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr'\n"
)


def written(path: Path, *records: Any) -> Path:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_log_is_diagnosed_and_a_diagnosis_taken(tmp_path: Path) -> None:
    file = written(
        tmp_path / "f.jsonl",
        {"id": "owner+name#7", "log": LOG, "opened": "2024-05-01T10:00:00Z", "title": "Mine"},
        {"category": "loss_nan", "cost": {"gpu_hours": 3, "seconds": 60}, "fixes": ["Do."],
         "root": {"text": "password=hunter22"}, "fingerprint": "1:a", "time": 1.7e9},
    )  # fmt: skip
    corpus = read_file(file)
    assert corpus.texts("category") == ["key_not_found", "loss_nan"]
    assert corpus.texts("project") == ["owner+name", ""]
    assert corpus.numbers["time"].tolist() == [1714557600.0, 1.7e9]
    assert corpus.numbers["gpu_hours"].tolist()[1] == 3
    assert corpus.examples["1:a"].line == "password=[redacted]"
    assert corpus.examples["1:a"].fix == "Do."


def test_a_weak_fingerprint_groups_nothing(tmp_path: Path) -> None:
    silent = {"category": "process_crash", "fingerprint": "2w:a", "user": "u", "name": "n"}
    records = [silent | {"id": str(n), "time": 1.7e9 + n} for n in range(3)]
    corpus = read_file(written(tmp_path / "f.jsonl", *records))
    assert corpus.texts("fingerprint") == ["", "", ""]
    assert corpus.texts("category") == ["process_crash"] * 3


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    file = written(
        tmp_path / "f.jsonl",
        {"id": "a", "category": "loss_nan", "gpu_hours": -1, "phase": "moon", "time": "soon"},
        {"id": "a", "category": "loss_nan"},
        {"id": "b", "category": "no such"},
        {"id": "c"},
        {"id": "d", "log": "\x00\x01\x02\x03" * 50},
        "{not json",
        "[1]",
        "[" * 100_000,
        '{"id": "e", "category": "loss_nan", "gpu_hours": NaN, "seconds": 1e999, "user": "\\ud800"}',
    )
    corpus = read_file(file)
    assert corpus.read == 9
    assert len(corpus) == 2
    assert corpus.left_out == {
        "has the id of an earlier record": 1,
        "has a category that is not in the taxonomy": 1,
        "has neither a log nor a category": 1,
        "has a log that is not text": 1,
        "is not JSON": 2,
        "is not a JSON object": 1,
    }
    assert corpus.notes == {
        "phase is not a term of the taxonomy": 1,
        "gpu_hours is not a number of at least 0": 2,
        "seconds is not a number of at least 0": 1,
        "time is not a time": 1,
    }
    assert not corpus.knows("gpu_hours").any()
    assert corpus.texts("user") == ["", "?"]


def test_a_damaged_file_gives_what_it_holds(tmp_path: Path) -> None:
    whole_file = gzip.compress(b'{"category": "loss_nan"}\n' * 20_000)
    (tmp_path / "f.jsonl.gz").write_bytes(whole_file[:-20])
    corpus = read_file(tmp_path / "f.jsonl.gz")
    assert len(corpus) > 1000
    assert corpus.left_out == {"the compressed data after it are damaged": 1}


def test_a_file_of_nothing_usable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of 1 record can be used; most frequent reason: is not JSON"
    ):
        read_file(written(tmp_path / "f.jsonl", "hello"))
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "nothing.jsonl")


def test_parquet_is_read_as_lines_are(tmp_path: Path, diagnoser: Diagnoser) -> None:
    opened = datetime(2026, 5, 1, tzinfo=UTC)
    records = [
        {"id": "é", "log": "RuntimeError: CUDA out of memory.", "opened": opened, "label": None},
        {"id": "b", "category": "timeout", "user": "?", "gpu_hours": 2.5, "label": {"category": "timeout"}},
        {"id": "b", "category": "timeout"},
        {"id": "c"},
    ]  # fmt: skip
    names = ["id", "log", "category", "user", "gpu_hours", "opened", "label"]
    columns = {name: [one.get(name) for one in records] for name in names}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "failures.parquet")
    corpus = read_file(tmp_path / "failures.parquet", diagnoser=diagnoser)
    assert corpus.texts("category") == ["gpu_out_of_memory", "timeout"]
    assert corpus.texts("label_category") == ["", "timeout"]
    assert corpus.numbers["time"][0] == opened.timestamp()
    assert corpus.left_out == {
        "has the id of an earlier record": 1,
        "has neither a log nor a category": 1,
    }
    assert not corpus.notes
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "failures.parquet").read_bytes()[:-50])
    with pytest.raises(InputError, match=r"cut.parquet cannot be read"):
        read_file(tmp_path / "cut.parquet")


@given(
    st.dictionaries(
        st.sampled_from(
            ["id", "log", "category", "phase", "label", "root", "fixes", "time", "opened", "cost",
             "gpu_hours", "user", "job", "attempt", "outcome", "title", "label_second"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8)
            | st.sampled_from(["loss_nan", "training"]),
            lambda inner: st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["category", "text", "also"]), inner, max_size=2),
            max_leaves=4,
        ),
    )
)  # fmt: skip
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_record_is_used_or_left_out(
    diagnoser: Diagnoser, tmp_path: Path, record: dict[str, Any]
) -> None:
    file = written(tmp_path / "f.jsonl", {"id": "known", "category": "timeout"}, record)
    corpus = read_file(file, diagnoser=diagnoser)
    assert corpus.read == 2
    assert len(corpus) + sum(corpus.left_out.values()) == 2
    assert set(corpus.texts("category")) <= set(taxonomy.categories())


def test_each_folder_and_each_lone_log_is_a_job(tmp_path: Path) -> None:
    (tmp_path / "one.log").write_text(LOG)
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "rank0.log").write_text("epoch 1\n" + LOG)
    (tmp_path / "many" / "rank1.log").write_text("epoch 1\n")
    (tmp_path / "many" / "facts.json").write_text(
        json.dumps({"exit_code": 1, "start": 1_700_000_000, "end": 1_700_003_600, "gpus": 4})
    )
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "out.log").write_text("epoch 1 loss 0.5\n")
    (tmp_path / "empty").mkdir()
    corpus = read_folder(tmp_path)
    failures = corpus.failures()
    assert corpus.read == 4
    assert len(failures) == 2
    assert failures.texts("category") == ["key_not_found"] * 2
    assert failures.numbers["gpu_hours"].tolist()[1] == 4
    assert failures.numbers["seconds"].tolist()[1] == 3600


def test_a_store_gives_attempts_with_their_findings(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "runs")
    runs.write(whole("aa1", name="resnet"))
    runs.write(whole("aa1", 2, name="resnet", time=START + 3000))
    runs.write(whole("aa2", name="bert", time=START + 5000))
    runs.write(whole("aa2", 2, exit_code=0, name="bert", time=START + 9000))
    database = open_database(tmp_path / "jobs.db")
    sweep(database, tmp_path / "runs")
    try:
        corpus = read_database(database)
        later = read_database(database, JobFilter(since=START + 99_999))
    finally:
        database.close()
    failures = corpus.failures()
    assert (len(corpus), len(failures), len(later)) == (2, 1, 0)
    assert failures.texts("user") == ["ann"]
    assert failures.texts("caught_by") == ["key-missing"]
    assert failures.numbers["seconds"].tolist() == [1800.0]
    titles = [one.title for one in study_failures(corpus).report.sections]
    assert "Retries" in titles
    assert "Checking" in titles


def test_many_records_are_read_in_bounded_time(tmp_path: Path) -> None:
    """50,000 here; bench/study_failures.py measures a million."""
    file = tmp_path / "f.jsonl"
    words = list(taxonomy.categories())[:20]
    with file.open("w") as out:
        for n in range(50_000):
            out.write(
                f'{{"id": "{n}", "category": "{words[n % 20]}", "fingerprint": "1:{n % 999}", '
                f'"user": "u{n % 50}", "name": "j{n % 7}", "time": {1.7e9 + n}, "seconds": {n}, '
                f'"gpu_hours": {n % 13}, "label": {{"category": "{words[n % 19]}"}}}}\n'
            )
    with bounded_work():
        studied = study_failures(read_file(file))
    assert studied.summary["failures"] == 50_000
    assert studied.summary["agreement"]["category"]["labelled"] == 50_000
