"""Issues: created with their first job, reopened by newer code, assigned by rules, found by their words."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from epochzero.errors import InputError
from epochzero.run.records.model import Conclusion, End, JobSnapshot, Output, Record
from epochzero.store import failure_notes, issues
from epochzero.store.backup import back_up, restore
from epochzero.store.daily_counts import Period
from epochzero.store.database import Database, open_database
from epochzero.store.failure_titles import failure_title
from epochzero.store.failures import failure_details
from epochzero.store.overview import fingerprints
from epochzero.store.queries import EVERY_JOB, JobFilter, find_jobs, with_search
from epochzero.store.recorder import Ending, Origin, add_endings
from epochzero.store.retention import delete_job
from epochzero.store.schema import FailureText, KnownFailure
from tests.store.jobs import started

AT = 1_760_000_000.0
DAY = 86_400.0
DIAGNOSIS: dict[str, Any] = {
    "category": "key_not_found",
    "title": "Key Not Found",
    "basis": "reading",
    "fingerprint": "2:abc",
    "exception": {"type": "KeyError", "message": "'fox'"},
    "user_frame": {"file": "/home/ann/proj/models/vit/report.py", "line": 3, "function": "report"},
    "root": {"file": "output.log", "line": 3, "text": "KeyError: 'fox'"},
}


def fail(
    database: Database,
    job: str,
    at: float,
    *,
    commit: str = "",
    driver: str = "",
    image: str = "",
    user: str = "ann",
    **found: Any,
) -> None:
    """Stores a job that failed after an hour."""
    records: list[Record] = [
        started(job, time=at, user=user, gpus=2, scheduler={"SLURM_JOB_PARTITION": "a100"}),
        JobSnapshot(
            at,
            0.1,
            commit=commit,
            driver=driver,
            variables={
                "SLURM_CONTAINER": "/images/torch.sif",
                "SEED": job,
                **({"CONTAINER_IMAGE": image} if image else {}),
            },
        ),
        Output(at + 3600, 3600.0, "output", ("output.log",), 4),
        End(at + 3600, 3600.0, 1),
        Conclusion(at + 3600, 3600.0, diagnosis=DIAGNOSIS | found, checked=None),
    ]
    add_endings(database, [Ending(job, records, io.BytesIO(b"log\n"), Origin(tells=True))])


def issue(database: Database, fingerprint: str = "2:abc") -> KnownFailure:
    with database.read() as session:
        return session.get_one(KnownFailure, ("", fingerprint))


def found(database: Database, text: str) -> Sequence[str]:
    return sorted(job.id for job in find_jobs(database, with_search(EVERY_JOB, text)))


def test_the_title_says_what_failed_and_where(database: Database) -> None:
    fail(database, "j1", AT)
    assert find_jobs(database)[0].title == "KeyError: 'fox' in report (report.py)"


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (
            "run.sh: line 6: aws: command not found",
            "Command: run.sh: line 6: aws: command not found",
        ),
        ("W1121 15:12:10.627000 27469 torch/x.py:753] Received 15", "Command: Received 15"),
        ("", "Command"),
    ],
)
def test_the_title_of_a_failure_without_a_frame_has_its_line(line: str, title: str) -> None:
    found = {"basis": "signature", "title": "Command", "root": {"text": line}}
    assert failure_title(found) == title


def test_the_first_job_is_remembered_after_it_was_deleted(database: Database) -> None:
    fail(database, "j1", AT, commit="aaa")
    fail(database, "j2", AT + DAY, commit="bbb")
    delete_job(database, "j1")
    row = issue(database)
    assert (row.first_seen, row.first_job, row.first_commit) == (AT, "j1", "aaa")
    assert failure_details(database, "", "2:abc").first == AT


def test_a_job_that_arrives_late_can_be_the_first(database: Database) -> None:
    fail(database, "j2", AT + DAY, commit="bbb")
    fail(database, "j1", AT, commit="aaa")
    assert issue(database).first_job == "j1"


def test_a_resolved_issue_is_reopened_by_a_later_job(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(database, "j1", AT)
    monkeypatch.setattr("time.time", lambda: AT + DAY)
    failure_notes.resolve(database, "", "2:abc", "bob", "fixed")
    assert issues.state_of(issue(database), AT + DAY) == "resolved"
    fail(database, "early", AT + DAY - 60)
    assert issues.state_of(issue(database), AT + 3 * DAY) == "resolved"
    fail(database, "j2", AT + 2 * DAY)
    row = issue(database)
    assert (issues.state_of(row, AT + 3 * DAY), row.regressed_job) == ("regressed", "j2")
    monkeypatch.setattr("time.time", lambda: AT + 4 * DAY)
    failure_notes.resolve(database, "", "2:abc", "bob", "now really")
    assert issues.state_of(issue(database), AT + 4 * DAY) == "resolved"


def test_jobs_of_code_that_ran_before_the_fix_do_not_reopen_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(database, "j1", AT, commit="old")
    monkeypatch.setattr("time.time", lambda: AT + DAY)
    failure_notes.resolve(database, "", "2:abc", "bob", "fixed", "fix")
    fail(database, "j2", AT + 2 * DAY, commit="old")
    assert issues.state_of(issue(database), AT + 2 * DAY) == "resolved"
    fail(database, "j3", AT + 3 * DAY, commit="newer")
    assert issues.state_of(issue(database), AT + 3 * DAY) == "regressed"


def test_a_merged_failure_reopens_the_issue_it_is_part_of(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(database, "j1", AT)
    fail(database, "j2", AT, fingerprint="2:other")
    failure_notes.merge(database, "", "2:other", "2:abc")
    monkeypatch.setattr("time.time", lambda: AT + DAY)
    failure_notes.resolve(database, "", "2:abc", "bob", "fixed")
    fail(database, "j3", AT + 2 * DAY, fingerprint="2:other")
    assert issues.state_of(issue(database), AT + 2 * DAY) == "regressed"


def test_an_ignored_issue_comes_back_after_its_time(database: Database) -> None:
    fail(database, "j1", AT)
    issues.ignore(database, "", "2:abc", 7)
    until = issue(database).ignored_until
    assert until is not None
    assert issues.state_of(issue(database), until - 1) == "ignored"
    assert issues.state_of(issue(database), until + 1) == "ongoing"


@pytest.mark.parametrize(
    ("kind", "pattern", "owner"),
    [
        ("path", "models/vit/*", "vera"),
        ("path", "models/bert/*", ""),
        ("user", "an*", "vera"),
        ("partition", "a100", "vera"),
        ("partition", "h100", ""),
    ],
)
def test_a_rule_gives_a_new_issue_its_owner(
    database: Database, kind: str, pattern: str, owner: str
) -> None:
    issues.add_owner_rule(database, "", kind, pattern, "vera")
    fail(database, "j1", AT)
    assert issue(database).owner == owner


def test_the_first_rule_that_matches_counts_and_people_are_not_overruled(
    database: Database,
) -> None:
    issues.add_owner_rule(database, "", "user", "ann", "vera")
    issues.add_owner_rule(database, "", "path", "*", "will")
    fail(database, "j1", AT)
    assert issue(database).owner == "vera"
    issues.assign(database, "", "2:abc", "zoe")
    fail(database, "j2", AT + DAY)
    assert issue(database).owner == "zoe"


def test_a_rule_of_another_team_cannot_be_removed(database: Database) -> None:
    rule = issues.add_owner_rule(database, "red", "user", "ann", "vera")
    with pytest.raises(InputError, match="no rule"):
        issues.remove_owner_rule(database, "blue", rule.id)


def test_words_of_failures_are_found(database: Database) -> None:
    fail(database, "j1", AT)
    text = "[Rank 1] Watchdog caught collective operation timeout: ProcessGroupNCCL"
    fail(database, "j2", AT + DAY, user="bob", fingerprint="", title="Collective timeout",
         basis="signature", exception=None, user_frame=None,
         root={"file": "output.log", "line": 1, "text": text})  # fmt: skip
    assert found(database, "KeyError") == ["j1"]
    assert found(database, "keyerr fox") == ["j1"]
    assert found(database, "NCCL") == found(database, "watchdog") == ["j2"]
    assert found(database, "report.py") == ["j1"]
    assert found(database, "KeyError NCCL") == []
    assert found(database, "timeout user:bob") == ["j2"]
    assert found(database, "user:ann") == ["j1"]
    assert found(database, "partition:a100 since:2025-10-10") == ["j2"]
    assert found(database, "image:/images/torch.sif node:nowhere") == []
    assert found(database, "\"; DROP TABLE jobs; '*") == []


def test_the_last_day_of_a_search_is_part_of_it(database: Database) -> None:
    fail(database, "j1", AT)
    day = datetime.fromtimestamp(AT, UTC).strftime("%Y-%m-%d")
    assert found(database, f"since:{day} until:{day}") == ["j1"]


def test_issues_of_some_jobs_are_found(database: Database) -> None:
    fail(database, "j1", AT)
    fail(database, "j2", AT, user="bob", fingerprint="2:other")
    failure_notes.merge(database, "", "2:other", "2:abc")

    def issues_of(user: str) -> list[tuple[str, int]]:
        period, wanted = Period(AT - DAY, AT + DAY), JobFilter(user=user)
        found = fingerprints(database, "", period, of_jobs=wanted)
        return [(one.fingerprint, one.jobs) for one in found]

    assert issues_of("ann") == issues_of("bob") == [("2:abc", 2)]
    assert issues_of("zoe") == []


def test_what_changed_with_the_first_jobs(database: Database) -> None:
    for n in range(25):
        commit = "aaa" if n < 24 else "bbb"
        fail(database, f"a{n}", AT + n, commit=commit, driver="550", fingerprint="2:other")
    for n in range(23):
        driver = "" if n == 3 else "570" if n < 20 else "550"
        fail(database, f"b{n}", AT + DAY + n, commit=f"c{n}", driver=driver, image="new")
    changes = [
        (one.kind, one.name, one.before, one.after)
        for one in failure_details(database, "", "2:abc").changes
    ]
    assert changes == [
        ("commit", "", "bbb, aaa", "c0"),
        ("image", "", "/images/torch.sif", "new"),
        ("driver", "", "550", "570"),
    ]


def test_notes_are_found(database: Database) -> None:
    fail(database, "j1", AT)
    failure_notes.add_note(database, "", "2:abc", "bob", "The tokenizer drops animals.")
    assert found(database, "tokenizer animals") == ["j1"]


def test_a_search_that_says_nothing_of_jobs_is_refused(database: Database) -> None:
    for text, told in (("is:new", "page of failures"), ("since:yesterday", "not a time")):
        with pytest.raises(InputError, match=told):
            with_search(EVERY_JOB, text)


def test_the_words_of_a_deleted_job_are_forgotten(database: Database) -> None:
    fail(database, "j1", AT)
    fail(database, "j2", AT + DAY)
    with database.read() as session:
        assert len(session.query(FailureText).all()) == 1
    delete_job(database, "j1")
    assert found(database, "fox") == ["j2"]
    delete_job(database, "j2")
    with database.read() as session:
        assert session.query(FailureText).all() == []


def test_a_restored_store_finds_the_same(database: Database, tmp_path: Path) -> None:
    fail(database, "j1", AT)
    back_up(database, tmp_path / "backup")
    other = open_database(tmp_path / "other.db")
    restore(other, tmp_path / "backup")
    assert found(other, "fox") == ["j1"]
    assert issue(other).first_job == "j1"
    other.close()
