"""A service that runs sums up the days that are over, for each of its teams."""

from __future__ import annotations

import time

from epochzero.store.daily_counts import DAY_S, uncounted
from epochzero.web.daily_sums import Summing
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
    Summing(database).look()
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
