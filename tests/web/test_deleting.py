"""Jobs that a team's admin throws away, and what others have of them."""

from __future__ import annotations

from pathlib import Path

from epochzero.run.records.journal import Journal
from epochzero.run.records.model import End
from epochzero.store.schema import Chunk, FailureRow
from tests.store.jobs import Runs, started, whole
from tests.web.conftest import Served
from tests.web.test_sending import ATTEMPT, LOG, send


def _rows(served: Served, table: type[Chunk] | type[FailureRow]) -> int:
    with served.service.database.read() as session:
        return len(session.query(table).all())


def test_a_deleted_job_is_gone_with_its_logs_and_who_did_it_is_known(
    served: Served, tmp_path: Path
) -> None:
    who = served.token()
    send(served, who, Runs(tmp_path / "runs").write(whole(), log=LOG))
    assert served.client.delete("/api/v1/jobs/job1", headers=who).status_code == 204
    assert served.client.get("/api/v1/jobs/job1", headers=who).status_code == 404
    assert served.client.delete("/api/v1/jobs/job1", headers=who).status_code == 404
    assert served.client.get(f"{ATTEMPT}/received", headers=who).json()["logs"] == {}
    assert (_rows(served, Chunk), _rows(served, FailureRow)) == (0, 0)
    (act,) = served.client.get("/api/v1/audit", headers=who).json()
    assert (act["action"], act["object"], act["who"]) == (
        "job deleted", "red.job1", "admin of red",
    )  # fmt: skip


def test_a_job_that_was_deleted_can_be_sent_again(served: Served, tmp_path: Path) -> None:
    who = served.token()
    journal = Runs(tmp_path / "runs").write(whole(), log=LOG)
    send(served, who, journal)
    served.client.delete("/api/v1/jobs/red.job1", headers=who)
    send(served, who, journal)
    assert served.client.get("/api/v1/jobs/job1", headers=who).status_code == 200


def test_what_another_team_has_of_a_log_stays(served: Served) -> None:
    red, blue = served.token("red"), served.token("blue")
    for who in (red, blue):
        path = "/api/v1/diagnose-and-store?job=same&exit_code=1"
        assert served.client.post(path, content=LOG, headers=who).json()["new"] is True
    assert _rows(served, Chunk) == 1
    assert served.client.delete("/api/v1/jobs/blue.same", headers=red).status_code == 404
    assert served.client.delete("/api/v1/jobs/same", headers=red).status_code == 204
    log = served.client.get("/api/v1/jobs/same/logs/output", headers=blue)
    assert b"KeyError" in log.content


def test_a_job_that_runs_is_not_deleted(served: Served, tmp_path: Path) -> None:
    who = served.token()
    journal = Runs(tmp_path / "runs").write([started()], log=LOG)
    send(served, who, journal)
    answer = served.client.delete("/api/v1/jobs/job1", headers=who)
    assert answer.status_code == 409
    assert "still running" in answer.json()["detail"]
    more = Journal(journal.parent)
    more.write(End(1_760_000_900.0, 900.0, 1))
    more.close()
    send(served, who, journal)
    assert served.client.delete("/api/v1/jobs/job1", headers=who).status_code == 204
