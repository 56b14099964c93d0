"""The benchmark of raw logs: references, rebuilt texts, halves, measures. Needs no network."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from epochzero import taxonomy

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "bench" / "labels" / "raw_logs.jsonl"
TEXT = "step 1\nRuntimeError: first\n[rank1]: RuntimeError: first\n"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    """``bench/raw_logs.py``, which imports its neighbors from its own directory."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import raw_logs

        yield raw_logs
    finally:
        sys.path.remove(str(ROOT / "bench"))


@pytest.fixture(scope="module")
def texts(bench: ModuleType) -> ModuleType:
    import raw_log_texts

    module: ModuleType = raw_log_texts
    return module


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ("git", "-C", str(folder), *who, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, str]:
    """A directory of clones with one repository, and its commit; the log was deleted later."""
    repository = tmp_path / "clones" / "ada+net"
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    (repository / "train.log").write_text(TEXT, encoding="utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "log")
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "rm", "-q", "train.log")
    git(repository, "commit", "-qm", "no log")
    return tmp_path / "clones", commit


def raw_log(texts: ModuleType, bench: ModuleType, commit: str = "0" * 40) -> Any:
    """A failed log of two ranks."""
    lines = TEXT.splitlines()
    return texts.RawLog(
        id="ada+net#1",
        repository="ada/net",
        commit=commit,
        path="train.log",
        sha256=hashlib.sha256(TEXT.encode()).hexdigest(),
        half="open",
        ranks="several",
        ended="failed",
        root=texts.Root(3, frozenset({bench.line_hash(lines[2])})),
        root_also=(texts.Root(2, frozenset({bench.line_hash(lines[1])})),),
        rank=1,
        category="illegal_argument",
        also=("type_mismatch",),
        root_cause="programming_error",
        phase="unknown",
        retry="fails_again",
    )


def found(bench: ModuleType, log: Any, outcome: str = "failed", **answer: Any) -> Any:
    told = bench.Answer(outcome == "failed", **answer)
    fields = {"root_cause": "programming_error", "phase": "training", "retry": "unknown"}
    return bench.Found(log, told, outcome, fields, confidence=0.75)


def test_references_are_complete_and_contain_no_text(texts: ModuleType) -> None:
    logs = texts.all_logs()
    assert len({log.id for log in logs}) == len(logs)
    assert len({log.sha256 for log in logs}) == len(logs)
    for log in logs:
        assert len(log.commit) == 40
        assert (log.root is not None) == (log.ended == "failed")
        assert bool(log.category) == (log.ended == "failed")
    allowed = {"line", "hashes"}
    lines = [line for path in texts.SETS for line in path.read_text(encoding="utf-8").splitlines()]
    for record in map(json.loads, lines):
        assert all(set(root) == allowed for root in record.get("root_also", ()))
        assert not {"text", "log"} & set(record)


def test_a_repository_is_in_one_half_that_its_name_decides(texts: ModuleType) -> None:
    prefixes = ("", None, *(f"blind_{number}_" for number in texts.NUMBERED))
    for path, prefix in zip(texts.SETS, prefixes, strict=True):
        for log in texts.raw_logs(path) if prefix is not None else ():
            assert log.half == prefix + texts.half_of(log.repository)


def test_no_repository_is_in_two_sets(texts: ModuleType) -> None:
    sets = [{log.repository.lower() for log in texts.raw_logs(path)} for path in texts.SETS]
    assert sum(map(len, sets)) == len(set().union(*sets))


def test_later_blind_sets_have_at_most_three_logs_of_a_repository(texts: ModuleType) -> None:
    for path in texts.SETS[3:]:
        counts = Counter(log.repository for log in texts.raw_logs(path))
        assert max(counts.values()) <= 3


def test_root_lines_are_lines_of_the_log(texts: ModuleType, bench: ModuleType) -> None:
    for record in (record for path in texts.SETS for record in bench.jsonl(path)):
        roots = [record["root"]] if record.get("root") else []
        for root in (*roots, *record.get("root_also", ())):
            assert 1 <= root["line"] <= record["lines"], record["id"]
            assert root["hashes"]


def test_each_part_can_be_measured(texts: ModuleType, bench: ModuleType) -> None:
    assert {log.half for log in texts.all_logs()} == set(bench.PARTS)


def test_labels_are_words_of_the_taxonomy(texts: ModuleType) -> None:
    words = {
        "category": set(taxonomy.categories()),
        "root_cause": set(taxonomy.root_causes()) | {"unknown"},
        "phase": set(taxonomy.phases()) | {"unknown"},
        "retry": set(taxonomy.retries()) | {"unknown"},
    }
    for log in texts.all_logs():
        assert log.ended in {"failed", "well", "cut", "disputed"}
        if log.ended != "failed":
            continue
        assert log.category not in log.also
        assert set(log.also) <= words["category"]
        for field, known in words.items():
            assert getattr(log, field) in known


def test_training_labels_are_of_projects_that_are_not_held_out(bench: ModuleType) -> None:
    from split import held

    records = list(bench.jsonl(LABELS.with_name("training.jsonl")))
    others = ("development", "held_out")
    measured = {
        each["id"] for name in others for each in bench.jsonl(LABELS.with_name(name + ".jsonl"))
    }
    assert len({record["id"] for record in records}) == len(records)
    for record in records:
        assert not held(record["id"])
        assert record["id"] not in measured
        assert {record["category"], *record["also"]} <= set(taxonomy.categories())


def test_a_deleted_log_is_rebuilt_from_its_commit(
    texts: ModuleType, bench: ModuleType, clone: tuple[Path, str], tmp_path: Path
) -> None:
    clones, commit = clone
    log = raw_log(texts, bench, commit)
    assert texts.rebuild(log, clones, tmp_path / "cache") == ""
    assert texts.cached(log, tmp_path / "cache").read_text(encoding="utf-8") == TEXT


def test_a_clone_one_level_down_is_found(
    texts: ModuleType, bench: ModuleType, clone: tuple[Path, str], tmp_path: Path
) -> None:
    clones, commit = clone
    below = tmp_path / "other" / "ada+net"
    below.mkdir(parents=True)
    (clones / "ada+net" / ".git").rename(below / "repo.git")
    assert texts.rebuild(raw_log(texts, bench, commit), tmp_path / "other", tmp_path / "c") == ""


def test_a_changed_text_is_refused(
    texts: ModuleType, bench: ModuleType, clone: tuple[Path, str], tmp_path: Path
) -> None:
    clones, commit = clone
    log = replace(raw_log(texts, bench, commit), sha256="0" * 64)
    problem = texts.rebuild(log, clones, tmp_path / "cache")
    assert "is not the text that was labelled" in problem
    assert not (tmp_path / "cache").exists()


def test_a_missing_clone_is_named(texts: ModuleType, bench: ModuleType, tmp_path: Path) -> None:
    problem = texts.rebuild(raw_log(texts, bench), tmp_path, tmp_path / "cache")
    assert problem.startswith("ada+net: no train.log at 000000000000")


def test_the_root_line_is_compared_by_number_or_text(texts: ModuleType, bench: ModuleType) -> None:
    log = raw_log(texts, bench)
    by_number = found(bench, log, line=3, text="anything")
    by_text = found(bench, log, line=9, text="[rank1]:  RuntimeError: first")
    other = found(bench, log, line=2, text="RuntimeError: first")
    wrong = found(bench, log, line=1, text="step 1")
    nothing = found(bench, log)
    assert [each.root_strict for each in (by_number, by_text, other, wrong, nothing)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert other.root_lenient
    assert not wrong.root_lenient


def test_measures_count_each_kind_of_log(texts: ModuleType, bench: ModuleType) -> None:
    log = raw_log(texts, bench)
    well, cut = (
        replace(log, id=ended, ended=ended, root=None, root_also=(), category="")
        for ended in ("well", "cut")
    )
    numbers = bench.measure(
        [
            found(bench, log, line=3, rank=1, category="type_mismatch"),
            found(bench, log, "no_failure", category="not_a_failure"),
            found(bench, well, category="illegal_argument"),
            found(bench, well, "evidence_missing"),
            found(bench, well, "no_failure"),
            found(bench, cut, category="illegal_argument"),
        ]
    )
    assert (numbers["failed"], numbers["missed"]) == (2, 1)
    assert (numbers["well"], numbers["false_alarms"], numbers["not_called_good"]) == (3, 1, 2)
    assert (numbers["cut"], numbers["cut_called_failed"]) == (1, 1)
    assert numbers["root_line"] == {"right": 1, "of": 2, "share": 0.5}
    assert numbers["rank"] == {"right": 1, "of": 2, "share": 0.5}
    assert numbers["category"]["value"] == 0.0
    assert numbers["category_or_also"]["value"] == 0.5
    assert numbers["phase"]["of"] == 0
    assert numbers["retry"] == {"right": 0, "of": 2, "share": 0.0}
    assert numbers["root_cause"]["right"] == 2


def test_agreement_compares_the_readings_where_they_differ(bench: ModuleType) -> None:
    records = [
        {"ended": "failed", "category": "a", "phase": "x"},
        {"ended": "failed", "category": "b", "phase": "x"},
        {
            "ended": "failed",
            "category": "a",
            "phase": "unknown",
            "first": {"phase": "x"},
            "second": {"phase": "y"},
        },
        {"ended": "disputed", "first": {"ended": "cut"}, "second": {"ended": "well"}},
    ]
    numbers = bench.agreement(records)
    assert numbers["ended"]["cases"] == 4
    assert numbers["ended"]["share"] == 0.75
    assert numbers["category"] == {"cases": 3, "share": 1.0, "kappa": 1.0}
    assert numbers["phase"]["share"] == pytest.approx(2 / 3, abs=1e-4)
    assert numbers["phase"]["kappa"] == 0.0


def test_each_look_at_the_held_out_half_is_recorded(bench: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    assert bench.looks(path) == []
    bench.add_look(path)
    bench.add_look(path)
    assert [set(look) for look in bench.looks(path)] == [{"date", "commit", "half"}] * 2


def test_missing_texts_are_an_error_before_a_look_is_recorded(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(bench, "LOOKS", tmp_path / "looks.jsonl")
    monkeypatch.setattr(sys, "argv", ["raw_logs.py", "--held-out", "--cache", str(tmp_path)])
    assert bench.main() == 1
    assert "Rebuild them with bench/raw_log_texts.py" in capsys.readouterr().err
    assert not (tmp_path / "looks.jsonl").exists()
