"""The threat model of the service: ``docs/threats.md`` names these tests, a line each."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochzero import zstd
from epochzero.run.reports import webhook_client
from epochzero.run.reports.webhook_client import post, refusal
from epochzero.store.teams import tokens
from epochzero.web.app import create_app
from epochzero.web.exports import cell
from epochzero.web.limits import Buckets
from epochzero.web.settings import ServerLimits, Settings
from epochzero.web.validation import cleaned
from tests.store.jobs import Runs, started, whole
from tests.web.conftest import Served
from tests.web.test_sending import ATTEMPT, LOG, send

ASKED = ("/jobs", "/jobs/x", "/jobs/x/logs/output", "/overview", "/fingerprints", "/export", "/tokens", "/webhooks", "/audit")  # fmt: skip


# All paths of a header at one service: each further one is slower to start than to ask.
@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer ez_wrong", "Basic YTpi", "Bearer " + "x" * 5000])  # fmt: skip
def test_without_a_valid_token_nothing_is_told(served: Served, header: str) -> None:
    for path in ASKED:
        answer = served.client.get(f"/api/v1{path}", headers={"Authorization": header})
        assert answer.status_code == 401, path


def test_a_revoked_token_and_its_session_end_at_once(served: Served) -> None:
    who = served.token()
    token = who["Authorization"].split()[1]
    signed = served.client.post("/login", data={"token": token, "next": "/api/v1/jobs"})
    assert signed.status_code == 200
    number = tokens(served.service.database)[0].id
    assert served.client.delete(f"/api/v1/tokens/{number}", headers=who).status_code == 204
    assert served.client.get("/api/v1/jobs", headers=who).status_code == 401
    assert served.client.get("/api/v1/jobs").status_code == 401


def test_the_store_holds_no_token(served: Served, tmp_path: Path) -> None:
    token = served.token()["Authorization"].split()[1]
    held = b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))
    assert token.encode() not in held


def test_who_guesses_tokens_is_slowed_down(served: Served) -> None:
    wrong = {"Authorization": "Bearer ez_wrong"}
    codes = [served.client.get("/api/v1/jobs", headers=wrong) for _ in range(60)]
    assert codes[-1].status_code == 429
    assert int(codes[-1].headers["Retry-After"]) >= 1
    right = served.client.get("/api/v1/jobs", headers=served.token())
    assert right.status_code == 200  # Others at the same address do not wait.


def test_one_who_guesses_does_not_keep_others_behind_the_proxy_from_signing_in(
    served: Served,
) -> None:
    token = served.token()["Authorization"].split()[1]
    codes = {
        served.client.post("/login", data={"token": "ez_wrong"}).status_code for _ in range(60)
    }
    assert codes == {401, 429}
    right = served.client.post("/login", data={"token": token}, follow_redirects=False)
    assert right.status_code == 303


def _refusals(client: TestClient, who: dict[str, str]) -> list[str]:
    acts = client.get("/api/v1/audit", headers=who).json()
    return [one["address"] for one in acts if one["action"] == "sign-in rejected"]


def test_refused_sign_ins_are_shown_to_admins_and_do_not_flood_the_log(served: Served) -> None:
    for _ in range(30):
        served.client.post("/login", data={"token": "ez_wrong"})
        served.client.get("/api/v1/jobs", headers={"Authorization": "Bearer ez_wrong"})
    for team in ("red", "blue"):
        found = _refusals(served.client, served.token(team))
        assert 1 <= len(found) <= 3
        assert set(found) == {"testclient"}


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("10.1.2.3", "203.0.113.7", "203.0.113.7"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.7", "203.0.113.7"),  # The first is the client's word.
        ("10.1.2.3", "203.0.113.7, 10.9.9.9", "203.0.113.7"),  # Two proxies.
        ("192.0.2.1", "203.0.113.7", "192.0.2.1"),
        ("127.0.0.1", "203.0.113.7", "127.0.0.1"),
    ],
)
def test_only_a_trusted_proxy_says_whose_address_it_is(
    tmp_path: Path, client: str, forwarded: str, address: str
) -> None:
    settings = Settings(
        f"sqlite:///{tmp_path}/store.db", tmp_path / "spool", trusted_proxies=("10.0.0.0/8",)
    )
    app = create_app(settings)
    with TestClient(app, client=(client, 1)) as asking:
        served = Served(asking, app.state.service)
        header = {"X-Forwarded-For": forwarded}
        asking.post("/login", data={"token": "ez_wrong"}, headers=header)
        assert _refusals(asking, served.token()) == [address]


def test_addresses_of_one_ipv6_network_count_as_one(tmp_path: Path) -> None:
    limits = ServerLimits(tries_per_minute=2)
    settings = Settings(
        f"sqlite:///{tmp_path}/store.db",
        tmp_path / "spool",
        limits=limits,
        trusted_proxies=("10.0.0.1",),
    )
    with TestClient(create_app(settings), client=("10.0.0.1", 1)) as asking:

        def code(address: str) -> int:
            headers = {"X-Forwarded-For": address}
            return asking.post("/login", data={"token": "x"}, headers=headers).status_code

        codes = [code(f"2001:db8::{n}") for n in range(1, 8)]
        assert codes[-1] == 429
        assert code("2001:db8:0:1::1") == 401


def test_the_audit_log_has_who_signed_in_and_who_changed_what_is_known(served: Served) -> None:
    who = served.token()
    token = who["Authorization"].split()[1]
    prints = []
    for error in ("KeyError: 'lr'", "ValueError: bad"):
        log = LOG.replace(b"KeyError: 'lr'", error.encode())
        path = "/api/v1/diagnose-and-store?exit_code=1"
        prints.append(served.client.post(path, content=log, headers=who).json()["fingerprint"])
    first, second = prints
    one = f"/api/v1/fingerprints/{first}"
    served.client.post(f"{one}/notes", json={"text": "see the wiki"}, headers=who)
    for change in (
        {"resolution": "fixed"},
        {"resolution": ""},
        {"merged_into": second},
        {"merged_into": ""},
    ):
        assert served.client.patch(one, json=change, headers=who).status_code == 200
    served.client.post("/login", data={"token": token})
    page = served.client.get(f"/failures/{first}").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]  # type: ignore[index]
    form = {"csrf": csrf, "text": "by the page"}
    assert served.client.post(f"/failures/{first}/note", data=form).status_code == 200
    served.client.post("/logout", data={"csrf": csrf})
    acts = served.client.get("/api/v1/audit", headers=who).json()
    assert [(act["who"], act["action"], act["object"]) for act in reversed(acts)] == [
        ("admin of red", "note added", first),
        ("admin of red", "resolved", first),
        ("admin of red", "reopened", first),
        ("admin of red", "merged", f"{first} into {second}"),
        ("admin of red", "split", first),
        ("admin of red", "signed in", ""),
        ("admin of red", "note added", first),
        ("admin of red", "signed out", ""),
    ]


def test_what_is_another_teams_is_not_there(served: Served, tmp_path: Path) -> None:
    red, blue = served.token("red"), served.token("blue")
    send(served, red, Runs(tmp_path / "runs").write(whole(), log=LOG))
    for job in ("job1", "red.job1", "blue.job1"):
        for path in (f"/jobs/{job}", f"/jobs/{job}/logs/output"):
            assert served.client.get(f"/api/v1{path}", headers=blue).status_code == 404
    assert served.client.get("/api/v1/jobs?search=red", headers=blue).json()["jobs"] == []
    assert served.client.get("/api/v1/overview", headers=blue).json()["jobs"] == 0
    assert served.client.get("/api/v1/fingerprints", headers=blue).json() == []
    assert served.client.get("/api/v1/export", headers=blue).text == ""
    note = {"text": "mine"}
    answer = served.client.post("/api/v1/fingerprints/1:abc/notes", json=note, headers=blue)
    assert answer.status_code == 404
    number = tokens(served.service.database, "red")[0].id
    assert served.client.delete(f"/api/v1/tokens/{number}", headers=blue).status_code == 404


def test_teams_may_have_jobs_of_the_same_identity(served: Served, tmp_path: Path) -> None:
    for team in ("red", "blue"):
        send(served, served.token(team), Runs(tmp_path / team).write(whole(), log=LOG))
    for team in ("red", "blue"):
        found = served.client.get("/api/v1/jobs", headers=served.token(team)).json()["jobs"]
        assert [job["id"] for job in found] == [f"{team}.job1"]


def test_a_journal_cannot_name_another_teams_job(served: Served, tmp_path: Path) -> None:
    red, blue = served.token("red"), served.token("blue")
    send(served, red, Runs(tmp_path / "red").write(whole(), log=LOG))
    before = served.client.get("/api/v1/jobs/job1", headers=red).json()
    for job in ("red.job1", "../../red/runs/job1"):
        assert cleaned(started(job)) is None
    forged = Runs(tmp_path / "blue").write(whole("other", name="forged"), log=LOG)
    send(served, blue, forged)
    assert served.client.get("/api/v1/jobs/job1", headers=red).json() == before


def test_a_role_allows_no_more_than_it_says(served: Served) -> None:
    roles = {role: served.token(role=role) for role in ("reader", "writer")}  # type: ignore[arg-type]
    for role, method, path in (
        ("reader", "PUT", f"{ATTEMPT}/journal"),
        ("reader", "POST", "/api/v1/diagnose-and-store"),
        ("reader", "POST", "/api/v1/fingerprints/1:abc/notes"),
        ("writer", "GET", "/api/v1/tokens"),
        ("writer", "POST", "/api/v1/webhooks"),
        ("writer", "GET", "/api/v1/audit"),
        ("writer", "DELETE", "/api/v1/jobs/job1"),
    ):
        answer = served.client.request(method, path, headers=roles[role], json={})
        assert answer.status_code == 403, (role, method, path)


def test_a_page_of_another_site_changes_nothing(served: Served) -> None:
    token = served.token()["Authorization"].split()[1]
    served.client.post("/login", data={"token": token, "next": "/healthz"})
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = served.client.post("/api/v1/diagnose-and-store", content=LOG, headers=headers)
        assert answer.status_code == 403
    assert served.client.post("/logout", data={"csrf": "guessed"}).status_code == 403
    assert served.client.get("/api/v1/overview").json()["jobs"] == 0


def test_without_authentication_only_this_machines_names_are_answered(tmp_path: Path) -> None:
    app = create_app(Settings(f"{tmp_path}/a.db", tmp_path / "spool", authentication=False))
    with TestClient(app, base_url="http://localhost:8642") as client:
        assert client.get("/api/v1/jobs").status_code == 200
        for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "10.1.2.3"}):
            assert client.get("/api/v1/jobs", headers=headers).status_code == 421


def test_a_session_leads_to_no_other_site(served: Served) -> None:
    token = served.token()["Authorization"].split()[1]
    for away in ("https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nx: y"):
        answer = served.client.post(
            "/login", data={"token": token, "next": away}, follow_redirects=False
        )
        assert answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie


def test_each_answer_forbids_scripts_and_frames_of_others(served: Served) -> None:
    for path in ("/login", "/healthz", "/api/v1/jobs", "/nothing", "/static/none.css"):
        headers = served.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_decompression_bomb_is_stopped_and_leaves_nothing(served: Served, encoding: str) -> None:
    bomb = bytes(400 << 20)
    data = gzip.compress(bomb) if encoding == "gzip" else zstd.compress(bomb)
    headers = served.token() | {"Content-Encoding": encoding}
    answer = served.client.put(f"{ATTEMPT}/logs/output.log", content=data, headers=headers)
    assert answer.status_code == 413
    sizes = served.client.get(f"{ATTEMPT}/received", headers=headers).json()
    assert sizes["logs"] == {"output.log": 0}


def test_a_body_that_is_too_large_is_stopped(served: Served) -> None:
    who = served.token()
    for path in (f"{ATTEMPT}/journal", "/api/v1/webhooks"):
        method = "PUT" if path.endswith("journal") else "POST"
        answer = served.client.request(method, path, content=bytes(2 << 20), headers=who)
        assert answer.status_code == 413
    form = served.client.post("/api/v1/webhooks", content=bytes(200 << 10), headers=who)
    assert form.status_code == 413  # What is no log is read whole.


def test_the_name_of_a_log_leads_nowhere_else(served: Served, tmp_path: Path) -> None:
    before, headers = sorted(tmp_path.rglob("*")), served.token()
    for name in (
        "..%2f..%2fevil.log",
        "%2e%2e",
        "output.log%00",
        "/etc/passwd",
        "journal.jsonl",
        ".sent",
        "output.tar.gz",
    ):
        answer = served.client.put(f"{ATTEMPT}/logs/{name}", content=b"x", headers=headers)
        assert answer.status_code in (404, 405, 422), name
        assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == []


def test_secrets_are_hidden_before_they_are_stored(served: Served, tmp_path: Path) -> None:
    secret = "ghp_" + "a1b2" * 10
    log = b"export GITHUB_TOKEN=" + secret.encode() + b"\nKeyError: 'lr'\n"
    records = whole(name=f"job with {secret}")
    send(served, served.token(), Runs(tmp_path / "runs").write(records, log=log), log)
    with served.service.database.read() as session:
        held = session.connection().exec_driver_sql("SELECT name FROM jobs").all()
    assert secret not in str(held)
    answer = served.client.get("/api/v1/jobs/job1/logs/output", headers=served.token())
    assert secret not in answer.text


class _Listener(BaseHTTPRequestHandler):
    told: list[str] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.told.append(self.path)
        self.send_response(302)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks that fail are not waited for; each is tried twice as always."""
    monkeypatch.setattr(webhook_client, "_PAUSE_S", 0.0)


@pytest.mark.usefixtures("tried_again_at_once")
def test_a_webhook_does_not_reach_private_networks_and_follows_no_redirect() -> None:
    server = HTTPServer(("127.0.0.1", 0), _Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001", "2130706433"):
        assert "private" in post(f"http://{host}:{port}/", b"{}", private=False) or host[0] == "["
    for host in (
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "[::]",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
    ):
        assert "private" in post(f"http://{host}/", b"{}", private=False)
    assert _Listener.told == []
    assert post(f"http://127.0.0.1:{port}/hook", b"{}") == "it returned 302"
    assert _Listener.told == ["/hook"]
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("tried_again_at_once")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "192.0.0.192",
        "100.100.100.200",
        "168.63.129.16",
        "0xa9fea9fe",
        "2852039166",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[::169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
    ],
)
def test_no_webhook_leads_to_a_metadata_service(host: str, private: bool) -> None:
    assert "metadata" in post(f"http://{host}/latest", b"{}", private=private)
    assert "metadata" in refusal(host.strip("[]"), 80, private=private)


@pytest.mark.usefixtures("tried_again_at_once")
@pytest.mark.parametrize("host", ["[64:ff9b::10.0.0.1]", "[2002:a00:1::]", "[::ffff:10.0.0.1]"])
def test_an_address_that_is_translated_to_a_private_one_is_refused(host: str) -> None:
    assert "private" in post(f"http://{host}/", b"{}", private=False)


@pytest.mark.usefixtures("tried_again_at_once")
def test_a_name_that_leads_elsewhere_later_is_refused_when_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the look-up that is checked is the one that is connected to, each time anew."""
    server = HTTPServer(("127.0.0.1", 0), _Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    both = ["93.184.216.34", "127.0.0.1"]
    # Each notice is tried twice.
    answers = [["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"], both, both]
    asked: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: object, **options: object) -> object:
        if host != "hooks.example.org":
            return real(host, port, *args, **options)
        asked.append(host)
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (one, port)) for one in answers[len(asked) - 1]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert refusal("hooks.example.org", 80, private=False) == ""
    for _ in range(2):
        said = post(f"http://hooks.example.org:{server.server_port}/", b"{}", private=False)
        assert "private" in said
    _Listener.told.clear()
    server.shutdown()
    server.server_close()


def test_a_webhook_into_a_private_network_is_refused_when_it_is_made(served: Served) -> None:
    who = served.token("red", "admin")
    for host in ("127.0.0.1:9", "localhost", "169.254.169.254", "[::1]"):
        made = served.client.post("/api/v1/webhooks", json={"url": f"http://{host}/x"}, headers=who)
        assert made.status_code == 422
        assert "not allowed as a webhook" in made.text
    assert served.client.get("/api/v1/webhooks", headers=who).json() == []


def test_a_team_that_asks_too_often_waits() -> None:
    buckets = Buckets(60)
    assert [buckets.take("red") for _ in range(120)] == [0.0] * 120
    assert 0 < buckets.take("red") <= 1
    assert buckets.take("blue") == 0
    buckets.spend("blue", 500)
    assert buckets.wait("blue") > 300


def test_a_team_without_room_is_told_when_to_come_again(tmp_path: Path) -> None:
    limits = ServerLimits(team_bytes=10)
    app = create_app(Settings(f"{tmp_path}/a.db", tmp_path / "spool", limits=limits))
    with TestClient(app) as client:
        served = Served(client, app.state.service)
        who = served.token()
        assert client.put(f"{ATTEMPT}/logs/output.log", content=LOG, headers=who).is_success
        answer = client.put(f"{ATTEMPT}/logs/rank1.log", content=LOG, headers=who)
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_text_becomes_a_formula_in_a_table(text: str) -> None:
    assert [cell(value) for value in (text, 5, -5.0)] == [f"'{text}", 5, -5.0]


def test_the_service_s_own_log_has_a_line_a_request_and_no_secret(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "epochzero.web")
    who = served.token()
    served.client.get("/api/v1/jobs?search=hunter2&x=%0d%0a%7b", headers=who)
    served.client.get("/no%0aline", headers=who)
    lines = [record.getMessage() for record in caplog.records if record.name == "epochzero.web"]
    assert [json.loads(line)["path"] for line in lines] == ["/api/v1/jobs", "/no\nline"]
    assert not any("\n" in line or "hunter2" in line or "ez_" in line for line in lines)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.binary(max_size=400), offset=st.integers(0, 300), encoding=st.sampled_from(["", "gzip", "zstd", "br"]))  # fmt: skip
def test_any_bytes_are_answered_and_break_nothing(
    served: Served, data: bytes, offset: int, encoding: str
) -> None:
    headers = served.token() | ({"Content-Encoding": encoding} if encoding else {})
    for path in (f"{ATTEMPT}/journal", f"{ATTEMPT}/logs/output.log"):
        answer = served.client.put(f"{path}?offset={offset}", content=data, headers=headers)
        assert answer.status_code in (200, 409, 415, 422)
    for path in ("/diagnose-and-store", "/diagnose-and-store/bulk"):
        answer = served.client.post(f"/api/v1{path}", content=data, headers=headers)
        assert answer.status_code in (200, 415, 422)


@settings(max_examples=150, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["diagnosis", "root", "rank", "confidence", "findings", "place", "line", "items", "score", "category"]), inner, max_size=4)))  # fmt: skip
def test_a_record_of_any_form_fits_the_store_or_is_left_out(value: object) -> None:
    from epochzero.run.records.model import Conclusion

    record = cleaned(Conclusion(1.0, 1.0, diagnosis=value, checked=value, ranking=value))  # type: ignore[arg-type]
    if record is not None:
        json.dumps(record.diagnosis, allow_nan=False)  # type: ignore[union-attr]


def test_every_line_of_the_threat_model_has_its_test() -> None:
    page = Path(__file__).parents[2] / "docs" / "threats.md"
    lines = re.findall(r"^\| (?!threat )[^-].*\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    named = [re.findall(r"`(test_\w+)`", line.split("|")[3]) for line in lines]
    assert len(named) >= 20
    assert all(named), "a line without a test"
    code = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("*.py")
    )
    there = set(re.findall(r"^def (test_\w+)", code, re.MULTILINE))
    assert {test for line in named for test in line} <= there
