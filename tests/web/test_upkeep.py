"""A running service sums up past days of each team, and deletes old logs."""

from __future__ import annotations

import time

from epochzero.store.audit import acts
from epochzero.store.daily_counts import DAY_S, uncounted
from epochzero.web.upkeep import Upkeep
from tests.web.conftest import Served
from tests.web.test_sending import LOG


def test_the_days_of_each_team_are_summed_up(served: Served) -> None:
    path = "/api/v1/diagnose-and-store?exit_code=1"
    begin = time.time() - 40 * DAY_S
    for team in ("red", "blue"):
        asked = f"{path}&started={begin}&ended={begin + 60}"
        served.client.post(asked, content=LOG, headers=served.token(team)).raise_for_status()
    database = served.service.database
    assert all(uncounted(database, team, now=time.time()) for team in ("red", "blue"))
    Upkeep(database).look()
    assert not any(uncounted(database, team, now=time.time()) for team in ("red", "blue"))
    numbers = served.client.get("/api/v1/overview", headers=served.token("red")).json()
    assert (numbers["jobs"], numbers["states"]) == (1, {"failed": 1})


def test_the_costliest_failure_comes_first(served: Served) -> None:
    who = served.token()
    path = "/api/v1/diagnose-and-store?exit_code=1&started=0&ended=3600"
    for number, gpus in enumerate((1, 1, 8)):
        log = LOG if number < 2 else LOG.replace(b"KeyError", b"IndexError")
        asked = f"{path}&job=job{number}&gpus={gpus}"
        served.client.post(asked, content=log, headers=who).raise_for_status()
    found = served.client.get("/api/v1/fingerprints", headers=who).json()
    assert [(one["jobs"], one["gpu_hours"]) for one in found] == [(1, 8.0), (2, 2.0)]


def test_logs_are_deleted_after_their_days_and_jobs_remain(served: Served) -> None:
    who = served.token()
    for name, age in (("old", 40), ("new", 20)):
        ended = time.time() - age * DAY_S
        path = (
            f"/api/v1/diagnose-and-store?exit_code=1&job={name}&started={ended - 60}&ended={ended}"
        )
        log = LOG + name.encode()
        served.client.post(path, content=log, headers=who).raise_for_status()
    database = served.service.database

    def log_of(name: str) -> int:
        return served.client.get(f"/api/v1/jobs/{name}/logs/output", headers=who).status_code

    Upkeep(database).look()
    assert (log_of("old"), log_of("new")) == (200, 200)
    upkeep = Upkeep(database, log_days=30)
    upkeep.look()
    assert (log_of("old"), log_of("new")) == (404, 200)
    (old,) = served.client.get("/api/v1/jobs/old", headers=who).json()["attempts"]
    assert old["ranks"][0]["diagnosis"]["category"] == "key_not_found"
    upkeep.look()
    entries = [entry for entry in acts(database, "red", limit=9) if entry.action == "logs pruned"]
    assert [entry.who for entry in entries] == ["server"]
