"""What programs ask: what people say of failures, and what folders tell."""

from __future__ import annotations

import os
import time
from pathlib import Path

from epochzero.web.watched_folder import WatchedFolder
from tests.web.conftest import Served
from tests.web.test_sending import LOG


def test_what_people_say_of_a_fingerprint_is_kept(served: Served) -> None:
    who = served.token()
    sent = served.client.post("/api/v1/diagnose-and-store?exit_code=1", content=LOG, headers=who)
    path = f"/api/v1/fingerprints/{sent.json()['fingerprint']}"
    served.client.post(f"{path}/notes", json={"text": "see password=hunter2x"}, headers=who)
    known = served.client.patch(path, json={"resolution": "Fixed in c0ffee."}, headers=who).json()
    assert known["notes"][0]["text"] == "see password=[redacted]"
    assert known["resolution"] == "Fixed in c0ffee."
    assert known["state"] == "resolved"
    change = {"resolution": "Now.", "resolved_commit": "f00d", "owner": "ann", "ignore_days": 7}
    known = served.client.patch(path, json=change, headers=who).json()
    assert (known["state"], known["owner"], known["resolved_commit"]) == ("ignored", "ann", "f00d")
    known = served.client.patch(path, json={"ignore_days": 0, "resolution": ""}, headers=who).json()
    assert (known["state"], known["resolved_commit"]) == ("new", "")
    merged = served.client.patch(path, json={"merged_into": "1:none"}, headers=who)
    assert merged.status_code == 404


def test_a_failure_that_the_team_does_not_have_is_not_found(served: Served) -> None:
    who = served.token()
    sent = served.client.post("/api/v1/diagnose-and-store?exit_code=1", content=LOG, headers=who)
    path = f"/api/v1/fingerprints/{sent.json()['fingerprint']}"
    assert served.client.get(path, headers=served.token(team="blue")).status_code == 404
    assert served.client.get(path, headers=who).json()["state"] == "new"


def test_jobs_of_code_that_ran_before_the_fix_are_no_recurrence(served: Served) -> None:
    who = served.token()

    def send(commit: str, started: float) -> str:
        end = started + 1
        where: dict[str, str | float] = {
            "exit_code": 1,
            "commit": commit,
            "started": started,
            "ended": end,
        }
        sent = served.client.post(
            "/api/v1/diagnose-and-store", params=where, content=LOG, headers=who
        )
        return str(sent.json()["fingerprint"])

    failure = send("c1", time.time() - 100)
    change = {"resolution": "Fixed.", "resolved_commit": "c2"}
    served.client.patch(f"/api/v1/fingerprints/{failure}", json=change, headers=who)
    send("c1", time.time() + 10)
    resolved = served.client.get(f"/failures/{failure}", headers=who).text
    assert "has not recurred" in resolved
    send("c3", time.time() + 20)
    page = served.client.get(f"/failures/{failure}", headers=who).text
    assert "It recurred in 1 job after it was resolved" in page


def test_what_a_sender_did_not_give_leaves_no_gap_in_a_page(served: Served) -> None:
    who = served.token()
    sent = served.client.post("/api/v1/diagnose-and-store?exit_code=1", content=LOG, headers=who)
    known = sent.json()
    for path in ("/jobs", f"/failures/{known['fingerprint']}", f"/jobs/{known['job']}"):
        page = served.client.get(path, headers=who).text
        assert " on </span>" not in page
        for gap in (">Nodes<", ">Users<", ">Where</dt><dd> on"):
            assert gap not in page


def test_logs_of_a_watched_folder_are_kept_once_and_links_left_alone(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "train.log").write_bytes(LOG)
    (folder / "core.bin").write_bytes(LOG)
    (tmp_path / "secret.log").write_bytes(LOG)
    os.symlink(tmp_path / "secret.log", folder / "link.log")
    service = served.service
    for _ in range(2):
        watched = WatchedFolder(
            folder, service.keeping, service.diagnosing, service.spool, most=1 << 20, quiet=0
        )
        assert watched.look() == 1
        assert watched.look() == 0
        with service.database.read() as session:
            found = session.connection().exec_driver_sql("SELECT name FROM jobs").all()
        assert [name for (name,) in found] == ["train.log"]


def test_a_file_of_a_watched_folder_that_is_written_again_is_another_job(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    service = served.service
    watched = WatchedFolder(
        folder, service.keeping, service.diagnosing, service.spool, most=1 << 20, quiet=0
    )
    for name in ("a.log", "b.log"):
        (folder / name).write_bytes(LOG)
    assert watched.look() == 2
    (folder / "a.log").write_bytes(LOG + b"step 2\n")
    assert watched.look() == 1
    with service.database.read() as session:
        found = session.connection().exec_driver_sql("SELECT name FROM jobs ORDER BY name").all()
    assert [name for (name,) in found] == ["a.log", "a.log", "b.log"]
