"""The report of failures: made beside the service, of the viewer's team only."""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from epochzero.errors import InputError
from epochzero.web import report_jobs
from epochzero.web.report_jobs import GeneratedReport, Reporting, Wanted
from tests.waiting import PATIENCE_S
from tests.web.pages.conftest import opened
from tests.web.pages.made import HOSTILE
from tests.web.pages.test_pages_all import does_nothing, is_allowed, is_read_without_eyes

YEAR = "/report?days=365"


def answered(
    client: TestClient, path: str = YEAR, headers: dict[str, str] | None = None
) -> httpx.Response:
    """The page when its report is there."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        answer = client.get(path, headers=headers)
        if answer.status_code == 200 and "http-equiv" not in answer.text[:1000]:
            return answer
        time.sleep(0.2)
    pytest.fail("the report is not made")


@pytest.fixture(scope="module")
def own(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service whose report is made once for all tests."""
    store = tmp_path_factory.mktemp("report") / "store.db"
    store.write_bytes(made.read_bytes())
    yield from opened(store)


def test_it_says_that_it_is_being_made_and_loads_itself_again(own: TestClient) -> None:
    first = own.get(YEAR)
    assert first.status_code == 200
    assert '<meta http-equiv="refresh" content="3">' in first.text
    assert "is being generated" in first.text
    waiting = own.get(f"{YEAR}&format=json")
    assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "3")
    assert "is being generated" not in answered(own).text


def test_it_has_the_tables_and_figures_of_the_study(own: TestClient) -> None:
    text = answered(own).text
    assert re.search("6 failures of 2 categories; most often .* \\(83.3 %\\)", text)
    for title in ("Dimensions", "Phases", "Cost", "Retries", "Trend", "Checking", "Data"):
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") >= 5
    assert "/failures?category=key_not_found&amp;since=" in text
    assert "sqlite" not in text
    summary = own.get(f"{YEAR}&format=json").json()
    assert summary["categories"]["key_not_found"]["count"] == 5
    archive = zipfile.ZipFile(io.BytesIO(own.get(f"{YEAR}&format=zip").content))
    assert {"report.html", "report.md", "tables/categories.csv", "figures/phases-figure.png"} <= {
        *archive.namelist()
    }


def test_it_is_a_page_as_all_others(own: TestClient) -> None:
    answer = answered(own)
    is_allowed(answer)
    is_read_without_eyes(answer.text)
    does_nothing(answer.text)
    assert HOSTILE[:8] not in answer.text


def test_a_team_has_its_own(teams: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = teams
    for team, failed in (("speech", 1), ("vision", 5)):
        headers = {"Authorization": f"Bearer {tokens[team]}"}
        assert f"{failed} failures of" in answered(client, "/report", headers).text
        assert client.get("/report?format=json", headers=headers).json()["failures"] == failed


def test_an_empty_period_says_what_to_do(own: TestClient) -> None:
    text = answered(own, "/report?since=2020-01-01&until=2020-01-02").text
    assert "Choose a longer one" in text


def test_without_what_draws_it_says_how_to_get_that(
    own: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochzero.web.pages.report.find_spec", lambda name: None)
    text = own.get("/report?days=7").text
    assert "pip install &#39;epochzero[study]&#39;" in text
    assert "is being generated" not in text


def test_a_team_has_one_in_the_making(tmp_path: Path) -> None:
    made = Reporting()
    one = Wanted(str(tmp_path / "store.db"), "vision", "vision", 0.0, 1.0)
    other = Wanted(one.store, "vision", "vision", 0.0, 2.0)
    assert made.report(one) is None
    assert made.report(other) is None
    assert list(made._futures) == [one]
    made.stop()
    assert made.report(other) is None
    assert list(made._futures) == [one]


def test_one_that_takes_too_long_is_ended_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_jobs, "_MOST_S", 0.05)
    made = Reporting()
    wanted = Wanted(str(tmp_path / "store.db"), "", "jobs", 0.0, 1.0)
    assert made.report(wanted) is None
    with pytest.raises(InputError, match="took too long"):
        until(made, wanted)
    assert made.report(wanted) is None
    made.stop()


def test_what_is_old_is_made_again_and_of_too_many_the_first_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter((time.time(), time.time() - 7200, *[time.time()] * 20))

    def make(self: Reporting, wanted: Wanted) -> GeneratedReport:
        return GeneratedReport("", "", {}, b"", next(moments), is_cut=False)

    monkeypatch.setattr(Reporting, "_make", make)
    made = Reporting()
    some = [Wanted("", "", "jobs", 0.0, float(n)) for n in range(20)]
    fresh = until(made, some[0])
    assert made.report(some[0]) is fresh
    assert made.report(some[1]) is None
    assert until(made, some[1]).moment > fresh.moment
    for one in some:
        until(made, one)
    assert some[0] not in made._futures
    assert some[-1] in made._futures
    made.stop()


def until(made: Reporting, wanted: Wanted) -> GeneratedReport:
    """The report when it is there."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if (found := made.report(wanted)) is not None:
            return found
        time.sleep(0.01)
    pytest.fail("the report is not made")
