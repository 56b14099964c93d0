"""Which other rank of an attempt has failed by itself."""

from __future__ import annotations

from pathlib import Path

from epochzero.run.process.siblings import failed_sibling
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import End, Note


def _ended(folder: Path, code: int, why: str = "") -> Path:
    journal = Journal(folder)
    for number in range(20):
        journal.write(Note(0.0, 0.0, "x" * number * 10_000))
    journal.write(End(1.0, 1.0, code, None, why))
    journal.close()
    return folder


def test_only_a_rank_of_the_attempt_that_failed_by_itself_counts(tmp_path: Path) -> None:
    own = _ended(tmp_path / "1-r3", 143)
    _ended(tmp_path / "2-r4", 1)
    _ended(tmp_path / "1-r2", 0)
    _ended(tmp_path / "1-r1", 143, "user")
    (tmp_path / "1-r5").mkdir()
    assert failed_sibling(own) is None
    _ended(tmp_path / "1-r0", 1)
    assert failed_sibling(own) == 0


def test_a_job_that_is_watched_as_a_whole_has_no_others(tmp_path: Path) -> None:
    _ended(tmp_path / "1-r0", 1)
    assert failed_sibling(_ended(tmp_path / "1", 143)) is None
