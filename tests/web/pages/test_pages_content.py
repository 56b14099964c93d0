"""What each page says, and what its forms do."""

from __future__ import annotations

import csv
import io
import re
import time
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from epochzero.run.records.model import JobEvent
from epochzero.store.job_details import RankDetails
from epochzero.store.recorder import take_in
from epochzero.store.schema import KnownFailure
from epochzero.store.teams import add_token
from epochzero.web.pages import escaped_text
from epochzero.web.pages.charts import span, stacks
from epochzero.web.pages.job import _ending
from tests.store.jobs import Runs, started
from tests.store.test_issues import DAY, fail
from tests.web.pages.made import HOSTILE


def test_the_overview_counts(client: TestClient) -> None:
    text = client.get("/").text
    assert re.search(r"<dt>jobs failed</dt><dd>6<span class=\"soft\"> of 8", text)
    assert re.search(r"Key Not Found.{0,400}<strong>[^<]*</strong> in 1 job ", text, re.DOTALL)
    assert "it predicted 5 of 5 failures of checked jobs" in text
    assert re.search(r"retries that failed again</dt><dd>4<", text)
    rows = client.get("/?format=json").json()
    assert sum(row["jobs"] for row in rows) == 8
    assert client.get("/?since=2020-01-01&until=2020-01-02&format=json").json() == []


def test_the_overview_starts_with_what_failed_today_however_rare(client: TestClient) -> None:
    database = client.app.state.database  # type: ignore[attr-defined]
    now = time.time()
    for number in range(27):
        fail(database, f"old{number}", now - 5 * DAY, fingerprint=f"2:{number % 9}", title="Old")
    fail(database, "now", now - 3600, fingerprint="2:now", basis="signature", title="It began now")
    text = client.get("/").text
    today, _, others = text.partition("Also open")
    assert "It began now" in today
    assert "2%3A0" not in today
    assert "2%3A0" in others
    assert "It began now" not in others


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"runs", "hostile", "key0", "ranks", "key1", "key2", "again", "good"}),
        ("state=succeeded", {"good"}),
        ("category=gpu_out_of_memory", {"ranks"}),
        ("fingerprint=1:abc", {"key0", "key1", "key2", "again"}),
        ("user=bea", {"again"}),
        ("host=node0", {"ranks"}),
        ("target=cluster", {"ranks"}),
        ("name=train-*&state=failed", {"key0", "key1", "key2"}),
        ("q=GPT", {"key0", "key1", "key2", "good"}),
        ("q=rank", {"ranks"}),
        ("q=1:0b", {"ranks"}),
        ("q=%25", set()),
        ("until=2020-01-01", set()),
    ],
)
def test_the_list_is_filtered_by_its_address(
    client: TestClient, query: str, found: set[str]
) -> None:
    rows = client.get(f"/jobs?{query}&format=json").json()
    assert {row["id"] for row in rows} == found
    page = client.get(f"/jobs?{query}").text
    assert set(re.findall(r'<th scope="row"><a href="/jobs/(\w+)"', page)) == found


def test_the_list_keeps_its_filters_in_its_form(client: TestClient) -> None:
    text = client.get("/jobs?user=bea&state=failed&fingerprint=1:abc").text
    assert 'name="user" value="bea"' in text
    assert "<option selected>failed</option>" in text
    assert 'type="hidden" name="fingerprint" value="1:abc"' in text


@pytest.mark.parametrize("sort", ["newest", "oldest", "costliest"])
def test_the_pages_of_the_list_show_each_job_once(
    client: TestClient, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochzero.web.pages.jobs._PAGE", 3)
    seen: list[str] = []
    path = f"/jobs?sort={sort}"
    while path:
        text = client.get(path).text
        seen += re.findall(r'<th scope="row"><a href="/jobs/(\w+)"', text)
        found = re.search(r'rel="next" href="([^"]+)"', text)
        path = found.group(1).replace("&amp;", "&") if found else ""
    whole = [row["id"] for row in client.get(f"/jobs?sort={sort}&format=json").json()]
    assert seen == whole
    assert len(set(seen)) == 8


def test_a_job_shows_its_cause_in_its_log_and_what_to_change(client: TestClient) -> None:
    text = client.get("/jobs/key0").text
    assert "Add &#39;lr&#39; to the configuration." in text
    assert "Do not restart the job unchanged" in text
    assert '<li class="root"><span class="number">803</span><code>KeyError: &#39;lr&#39;' in text
    assert "logs/output?line=803#L803" in text
    assert "Rank 1: Peer gone" in text
    assert "config has no key" in text
    assert "targets?left=job:good&amp;right=job:key0" in text
    assert all(f"/jobs/{other}" in text for other in ("key1", "key2", "again"))
    assert text.count("<svg") == 5
    environment = text[text.index("<dt>Environment</dt>") :].partition("\n")[0]
    assert "<dd>python <code>3.11.9</code>, commit <code>c0ffee</code>" in environment


def test_the_rank_that_failed_first_stands_first(client: TestClient) -> None:
    text = client.get("/jobs/ranks").text
    rows = re.findall(r'<th scope="row">(rank \d) on node\d.*?</tr>', text)
    assert rows[0] == "rank 2"
    assert len(rows) == 4
    assert text.count("span s-failed root") == 1
    assert text.count("root cause</span>") == 1
    assert text.count("exit code 1, by another rank") == 3
    assert "GPU memory is 97 % full." in text


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"exit_code": 137, "signal": 9, "why": "scheduler"}, "SIGKILL, by scheduler"),
        ({"exit_code": 228, "signal": 100}, "signal 100"),
        ({"exit_code": 0}, "exit code 0"),
        ({}, ""),
    ],
)
def test_how_a_rank_ended_is_told(values: dict[str, Any], told: str) -> None:
    known: dict[str, Any] = {"exit_code": None, "signal": None, "why": ""}
    rank = RankDetails(1, 0, "node1", "failed", 0.0, 1.0, snapshot={}, **known | values)
    assert _ending(rank) == told


def test_a_log_is_shown_around_a_line_with_an_anchor_for_each(client: TestClient) -> None:
    base = client.get("/jobs/key0").text
    path = re.search(r'href="(/jobs/key0/attempts/1/ranks/\d+/logs/output)', base)
    assert path is not None
    text = client.get(f"{path.group(1)}?line=803").text
    assert '<li id="L803" class="root">' in text
    assert 'id="L763"' in text
    assert 'id="L762"' not in text
    assert "Next lines" not in text
    assert 'href="?first=463"' in text
    first = client.get(path.group(1)).text
    assert 'id="L300"' in first
    assert 'id="L301"' not in first
    assert 'href="?first=301"' in first
    raw = client.get(f"{path.group(1)}?raw=true")
    assert raw.text.endswith("bye\n")
    assert raw.headers["content-type"].startswith("text/plain")
    assert "attachment" in raw.headers["content-disposition"]


def test_a_failure_says_who_has_it_and_keeps_what_people_say(client: TestClient) -> None:
    path = "/failures/1:abc"
    text = client.get(path).text
    assert re.search(r">ann</a> <span class=\"soft\">3</span>", text)
    csrf = re.search(r'name="csrf" value="([^"]+)"', text)
    assert csrf is not None
    data = {"csrf": csrf.group(1)}
    assert client.post(f"{path}/note", data={"text": "x"}).status_code == 403
    assert client.post(f"{path}/note", data=data | {"text": ""}).status_code == 422
    assert (
        "<b>Look</b>" not in client.post(f"{path}/note", data=data | {"text": "<b>Look</b>"}).text
    )
    assert "&lt;b&gt;Look&lt;/b&gt;" in client.get(path).text
    assert "U+000D" not in client.post(f"{path}/note", data=data | {"text": "One.\r\nTwo."}).text
    wrong = client.post(f"{path}/merge", data=data | {"text": "1:none"})
    assert wrong.status_code == 422
    assert 'href="/failures/1%3Aabc">Go back and correct the form.' in wrong.text
    resolved = client.post(f"{path}/resolve", data=data | {"text": "Set lr in base.yaml"}).text
    assert "Set lr in base.yaml" in resolved
    assert "No action is required" in resolved
    assert "resolved</span>" in client.get("/failures").text
    assert "Set lr" not in client.post(f"{path}/reopen", data=data).text
    assert client.post(f"{path}/burn", data=data).status_code == 404


def test_failures_are_merged_and_split(client: TestClient) -> None:
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/failures/1:abc").text)
    assert csrf is not None
    data = {"csrf": csrf.group(1)}
    suggested = re.findall(r'<option value="([^"]+)">', client.get("/failures/1:abc").text)
    assert [unescape(name) for name in suggested] == ['1:"><script>']
    merge = "/failures/1:0b5c4a/merge"
    assert client.post(merge, data=data | {"text": "1:0b5c4a"}).status_code == 422
    assert client.post(merge, data=data | {"text": "1:none"}).status_code == 422
    assert client.post(merge, data=data | {"text": "1:abc"}).status_code == 200
    together = client.get("/failures/1:abc?format=json").json()
    assert together["jobs"] == 5
    assert together["fingerprints"] == ["1:abc", "1:0b5c4a"]
    client.post("/failures/1:0b5c4a/split", data=data)
    assert client.get("/failures/1:abc?format=json").json()["jobs"] == 4


def test_two_periods_are_compared(client: TestClient) -> None:
    rows = client.get("/compare?days=4&format=json").json()
    by_name = {row["category"]: row for row in rows}
    assert by_name["gpu_out_of_memory"]["failed_now"] == 1
    assert by_name["gpu_out_of_memory"]["failed_before"] == 0
    assert by_name["key_not_found"]["failed_before"] == 1


def test_the_change_between_periods_of_different_lengths_is_of_as_many_days(
    client: TestClient,
) -> None:
    day = datetime.now(UTC).date()
    asked = {
        "other_since": day - timedelta(days=5), "other_until": day - timedelta(days=2),
        "since": day - timedelta(days=1), "until": day,
    }  # fmt: skip
    text = client.get("/compare", params={name: str(value) for name, value in asked.items()}).text
    assert 'data-name="Before">4</td><td class="n" data-name="Now">2<' in text
    assert "scaled to the length of the current one" in text
    came, went = text.split('<h2 id="came">')[1].split('<h2 id="went">')
    assert "1%3A%22%3E%3Cscript%3E" in came
    assert "1%3A0b5c4a" in went
    assert "1%3Aabc" not in came + went


def test_merged_failures_are_listed_together(client: TestClient) -> None:
    text = client.get("/failures/1:abc").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', text)
    assert csrf is not None
    data = {"csrf": csrf.group(1), "text": "1:abc"}
    assert client.post("/failures/1:0b5c4a/merge", data=data).status_code == 200
    every = {"key0", "key1", "key2", "again", "ranks"}
    link = re.search(
        r'<a href="([^"]+)">All jobs with this failure', client.get("/jobs/ranks").text
    )
    assert link is not None
    for path in (link.group(1), "/jobs?fingerprint=1:abc"):
        text = client.get(path).text
        assert set(re.findall(r'<th scope="row"><a href="/jobs/(\w+)"', text)) == every
        assert "1:abc, with 1 merged" in text
    assert [row["id"] for row in client.get("/jobs?fingerprint=1:0b5c4a&format=json").json()] == [
        "ranks"
    ]
    assert all(f'href="/jobs/{one}"' in client.get("/failures/1:abc").text for one in every)


def test_a_failure_that_comes_back_after_it_was_resolved_is_open_again(client: TestClient) -> None:
    text = client.get("/failures/1:abc").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', text)
    assert csrf is not None
    secret = "ghp_" + "a1B2" * 9
    data = {"csrf": csrf.group(1), "text": f"Set lr; not {secret}"}
    shown = client.post("/failures/1:abc/resolve", data=data).text
    assert "Set lr; not" in shown
    assert secret not in shown
    database = client.app.state.database  # type: ignore[attr-defined]
    with database.write() as session:
        session.query(KnownFailure).where(KnownFailure.resolved.is_not(None)).update(
            {"resolved": time.time() - 2 * 86_400, "regressed": time.time() - 86_400}
        )
    text = client.get("/failures").text
    assert "regressed</span>" in text
    assert "resolved</span>" not in text


@pytest.mark.parametrize(("sort", "first"), [("jobs", "1:abc"), ("gpu_hours", "1:abc")])
def test_the_failures_have_two_orders(client: TestClient, sort: str, first: str) -> None:
    rows = client.get(f"/failures?sort={sort}&format=json").json()
    assert rows[0]["fingerprint"] == first
    values = [row[sort] for row in rows]
    assert values == sorted(values, reverse=True)


def test_two_environments_are_compared(client: TestClient) -> None:
    rows = client.get("/targets?left=job:key0&right=target:cluster&format=json").json()
    torch = next(row for row in rows if row["name"] == "torch")
    assert (torch["left"], torch["is_major"]) == ("2.13.0", True)
    assert client.get("/targets?format=json").json()[1]["target"] == "cluster"


@pytest.mark.parametrize("path", ["/jobs", "/failures", "/", "/compare", "/targets"])
def test_a_table_has_no_formula(client: TestClient, path: str) -> None:
    answer = client.get(f"{path}?format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    for row in csv.reader(io.StringIO(answer.text)):
        assert not [cell for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))]
        assert not [cell for cell in row if re.match(r"-(?!\d)", cell)]


@given(st.text())
def test_any_text_is_shown_and_does_nothing(text: str) -> None:
    for shown in (str(escaped_text.visible(text)), str(escaped_text.line(text))):
        inside = re.sub(r'<span class="[a-z -]*"( title="[^"<>]*")?>|</span>', "", shown)
        assert not re.search("[<>\"'\x1b\u202a-\u202e\u2066-\u2069\x00]", inside)


def test_colors_of_a_terminal_are_kept_and_all_else_of_it_taken_out() -> None:
    assert (
        str(escaped_text.line("\x1b[1;31mbad\x1b[0m ok"))
        == '<span class="t-red t-bold">bad</span> ok'
    )
    assert str(escaped_text.line("\x1b]8;;http://evil\x07link\x1b]8;;\x07")) == "link"
    assert str(escaped_text.line("\x1b[2J\x1b[Hx\x1b[38;5;9my")) == "xy"
    assert str(escaped_text.line("10 %\r50 %\r100 %")) == "100 %"
    assert "8,000 more characters" in str(escaped_text.line("x" * 10_000))


def test_a_chart_survives_names_of_any_kind() -> None:
    drawn = str(stacks([HOSTILE], {HOSTILE: ("0", [1.0])}, HOSTILE))
    drawn += span(0.0, 1.0, 0.0, kind="s-failed", label=HOSTILE, marks=[(9.0, HOSTILE)])
    assert "<script>" not in drawn
    assert "f0" in str(stacks(["a"], {"b": ("0", [0.5])}, ""))
    assert "rect" not in str(stacks([], {"b": ("0", [])}, ""))
    assert "rect" not in str(stacks(["a"], {}, ""))


def test_a_team_sees_its_own_jobs_only(teams: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = teams
    speech = {"Authorization": f"Bearer {tokens['speech']}"}
    assert [row["id"] for row in client.get("/jobs?format=json", headers=speech).json()] == [
        "ranks"
    ]
    for path in (
        "/jobs/key0", "/failures/1:abc", "/jobs/key0/attempts/1/ranks/1/logs/output",
        "/jobs/key0/attempts/1/ranks/1/logs/output?raw=true", "/jobs/key0?format=json",
    ):  # fmt: skip
        assert client.get(path, headers=speech).status_code == 404, path
    for path in ("/", "/failures", "/compare?days=30", "/targets"):
        text = client.get(path, headers=speech).text
        assert "1:abc" not in text
        assert "Key Not Found" not in text
    leak = client.get("/targets?left=job:key0&right=job:ranks", headers=speech)
    assert leak.status_code == 422


def test_who_is_not_signed_in_is_led_to_the_form(
    teams: tuple[TestClient, dict[str, str]],
) -> None:
    client, _ = teams
    for path in ("/", "/jobs?state=failed", "/jobs/key0", "/failures"):
        answer = client.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login?next=")


def test_a_reader_has_no_forms(teams: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = teams
    reader = {"Authorization": f"Bearer {tokens['reader']}"}
    text = client.get("/failures/1:abc", headers=reader).text
    assert "Add comment" not in text
    assert client.post("/failures/1:abc/note", headers=reader).status_code == 403


def test_a_search_that_is_not_over_says_so_and_leads_on(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochzero.store.queries.MOST_SEARCHED", 3)
    text = client.get("/jobs?q=nothing-is-called-so").text
    assert "No job has been sent" not in text
    assert "Search the next ones." in text
    assert re.search(r'rel="next" href="[^"]+">Search further<', text)


def _csrf(client: TestClient) -> dict[str, str]:
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/failures/1:abc").text)
    assert found is not None
    return {"csrf": found.group(1)}


def test_issues_are_searched_by_their_words_state_and_owner(client: TestClient) -> None:
    data = _csrf(client)
    client.post("/failures/1:abc/assign", data=data | {"text": "local"})
    client.post("/failures/1:0b5c4a/ignore", data=data | {"text": "7"})

    def found(query: str) -> set[str]:
        rows = client.get(f"/failures?format=json&{query}").json()
        return {row["fingerprint"] for row in rows}

    everything = found("")
    assert found("mine=true") == found("q=owner:local") == found("q=keyerror") == {"1:abc"}
    assert found("state=ignored") == found("q=is:ignored") == {"1:0b5c4a"}
    assert found("state=open") == {"1:abc", '1:"><script>'}
    assert found("q=owner:nobody") == {"1:0b5c4a", '1:"><script>'}
    assert found('q=category:"Key Not Found"') == found("category=key_not_found") != everything
    assert "No issue matches" in client.get("/failures?q=nonsense").text
    assert client.get("/failures?state=nonsense").status_code == 422
    assert found("q=user:nobody") == found("q=keyerror node:nowhere") == set()
    assert found("q=since:3650d until:1h") | found("q=name:*") == everything
    text = client.get("/failures/1:0b5c4a").text
    assert "Ignored until" in text
    client.post("/failures/1:0b5c4a/show", data=data)
    assert found("state=ignored") == set()
    assert "CUDA out of memory" in client.get("/").text
    for days in ("", "0", "9999", "soon"):
        wrong = client.post("/failures/1:abc/ignore", data=data | {"text": days})
        assert wrong.status_code == 422


def test_a_resolution_names_the_commit_of_the_fix(client: TestClient) -> None:
    data = _csrf(client) | {"text": "Set lr.", "commit": "f00d"}
    assert "in <code>f00d</code>" in client.post("/failures/1:abc/resolve", data=data).text


def test_a_search_is_saved_and_removed(client: TestClient) -> None:
    data = _csrf(client) | {"name": "my jobs", "address": "/jobs?q=user:bea"}
    assert "my jobs" in client.post("/searches", data=data).text
    assert 'href="/jobs?q=user:bea"' in client.get("/jobs").text
    for address in ("https://evil.example", "//evil.example/jobs?", "/logout", "/jobs/../admin"):
        assert client.post("/searches", data=data | {"address": address}).status_code == 422
    client.post("/searches", data=data | {"remove": "1"})
    assert "my jobs" not in client.get("/jobs").text


def test_an_admin_changes_the_settings_of_the_team(
    teams: tuple[TestClient, dict[str, str]],
) -> None:
    client, tokens = teams
    database = client.app.state.database  # type: ignore[attr-defined]
    admin = add_token(database, "vision", "eve", "admin")
    assert (
        client.get("/admin", headers={"Authorization": f"Bearer {tokens['vision']}"}).status_code
        == 403
    )
    client.post("/login", data={"token": admin})
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/admin").text)
    assert csrf is not None
    data = {"csrf": csrf.group(1)}
    made = client.post("/admin/token", data=data | {"name": "node7", "role": "writer"}).text
    token = re.search(r"(ez_[\w-]+)", made)
    assert token is not None
    assert token.group(1) not in client.get("/admin").text
    more = client.post("/admin/token", data=data | {"name": "x", "role": "operator"})
    assert more.status_code == 403
    assert client.post("/admin/team", data=data | {"team": "new", "name": "x"}).status_code == 403
    row = re.search(r'node7.*?name="id" value="(\d+)"', client.get("/admin").text, re.DOTALL)
    assert row is not None
    client.post("/admin/revoke", data=data | {"id": row.group(1)})
    rule = {"kind": "path", "pattern": "models/*", "owner": "vera"}
    assert client.post("/admin/owner", data=data | rule).status_code == 303
    assert "vera" in client.get("/admin").text
    assert client.post("/admin/owner", data=data | rule | {"kind": "moon"}).status_code == 422
    hook = {"url": "http://10.0.0.1/hook"}
    assert client.post("/admin/webhook", data=data | hook).status_code == 422
    assert client.post("/admin/prune", data=data | {"days": "0"}).status_code == 422
    assert client.post("/admin/prune", data=data | {"days": "1"}).status_code == 303
    text = client.get("/admin").text
    for action in ("token created", "token revoked", "ownership rule added", "logs pruned"):
        assert action in text
    assert client.post("/admin/burn", data=data).status_code == 404
    assert client.post("/admin/owner", data=rule).status_code == 403


def test_a_running_job_shows_the_end_of_its_log(client: TestClient) -> None:
    assert 'http-equiv="refresh"' in client.get("/jobs/runs").text
    assert "Live log" in client.get("/jobs/runs").text
    assert "Live log" not in client.get("/jobs/key0").text


def test_an_operator_adds_teams_and_sees_no_data_of_them(
    teams: tuple[TestClient, dict[str, str]],
) -> None:
    client, _ = teams
    database = client.app.state.database  # type: ignore[attr-defined]
    client.post("/login", data={"token": add_token(database, "vision", "olga", "operator")})
    shown = client.get("/admin").text
    assert "speech" in shown
    csrf = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert csrf is not None
    data = {"csrf": csrf.group(1), "team": "audio", "name": "zoe"}
    token = re.search(r"ez_[\w-]+", client.post("/admin/team", data=data).text)
    assert token is not None
    for team, status in (("audio", 422), ("speech", 422), ("NO", 422)):
        assert client.post("/admin/team", data=data | {"team": team}).status_code == status
    zoe = {"Authorization": f"Bearer {token[0]}"}
    client.cookies.clear()
    audit = client.get("/api/v1/audit", headers=zoe)
    assert audit.status_code == 200
    assert client.get("/jobs?format=json", headers=zoe).json() == []
    new = {"name": "x", "role": "operator"}
    assert client.post("/api/v1/tokens", headers=zoe, json=new).status_code == 403


def test_a_running_job_shows_its_slow_rank_and_no_hang_that_is_over(
    client: TestClient, tmp_path: Path
) -> None:
    database = client.app.state.database  # type: ignore[attr-defined]
    now = time.time()
    events = [
        JobEvent(now - 50, 10.0, "stall", "no output for 60 s"),
        JobEvent(now - 40, 20.0, "stall_over", "there is output again"),
        JobEvent(now - 30, 30.0, "slow_rank", "rank 3 is 1.4 times slower than the median", rank=3),
    ]
    begun = started("slow", time=now - 60, name="slow", pid=1)
    take_in(database, Runs(tmp_path / "runs").write([begun, *events]))
    steps = client.get("/jobs/slow").text.partition("What to do now")[2].partition("</ol>")[0]
    assert "Rank 3 is 1.4 times slower than the median." in steps
    assert "no output" not in steps.lower()
