"""Webhooks of a team, told over real connections, and what the team reads of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from bench.serve_kill import TEAM
from bench.serve_kill import Service as Process
from epochzero.run.reports import notifications as notify
from epochzero.run.reports import webhook_client
from epochzero.store.database import open_database
from epochzero.store.outbox import begin, due
from epochzero.store.webhooks import add_rule
from epochzero.web.app import create_app
from epochzero.web.client import Client
from epochzero.web.settings import Settings
from tests.store.conftest import address, postgresql
from tests.waiting import PATIENCE_S, wait_until
from tests.web.conftest import LIMITS, Served
from tests.web.test_sending import LOG

__all__ = ["address", "postgresql"]
SENT = "/api/v1/diagnose-and-store?exit_code=1"


class Receiver(ThreadingHTTPServer):
    """Answers with the codes that it is given, in order, the last again and again; 0 hangs."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [200]
        self.told: list[tuple[str, Any]] = []
        self.identities: list[str | None] = []
        self.leave = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keeps what it is told."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.identities.append(self.headers["Webhook-Id"])
        self.server.told.append((self.path, json.loads(body)))
        answers = self.server.answers
        code = answers.pop(0) if len(answers) > 1 else answers[0]
        if not code:
            self.server.leave.wait(PATIENCE_S)
            return
        self.send_response(code)
        if code == 302:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.leave.set()
    one.shutdown()
    one.server_close()


@pytest.fixture(params=[True])
def telling(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A service that may tell addresses of this machine, unless the parameter says no."""
    settings = Settings(
        f"sqlite:///{tmp_path}/store.db",
        tmp_path / "spool",
        limits=LIMITS,
        private_webhooks=request.param,
        webhook_pauses=(0.1, 0.2),
        url="https://epochzero.example.org/",
    )
    app = create_app(settings)
    with TestClient(app) as client:
        yield Served(client, app.state.service)


def hook(served: Served, url: str, team: str = "red", **rule: Any) -> dict[str, str]:
    """An admin whose team has a webhook."""
    who = served.token(team)
    made = served.client.post("/api/v1/webhooks", json={"url": url, **rule}, headers=who)
    assert made.status_code == 201
    return who


def outcomes(served: Served, who: dict[str, str], count: int) -> list[tuple[str, str]]:
    """What the team reads of its webhooks, the oldest first, once it is so much."""
    end = time.monotonic() + PATIENCE_S
    while True:
        acts = served.client.get("/api/v1/audit", headers=who).json()
        found = [
            (one["action"], one["object"]) for one in reversed(acts) if one["who"] == "service"
        ]
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.05)


def test_a_new_failure_is_told_once_and_the_team_reads_so(
    telling: Served, receiver: Receiver
) -> None:
    who = hook(telling, f"{receiver.url}/hook")
    lines = [json.dumps({"log": LOG.decode(), "job": job, "exit_code": 1}) for job in "abc"]
    telling.client.post(
        "/api/v1/diagnose-and-store/bulk", content="\n".join(lines), headers=who
    ).raise_for_status()
    telling.client.post(f"{SENT}&job=d", content=LOG, headers=who).raise_for_status()
    ((action, what),) = outcomes(telling, who, 1)
    ((path, told),) = receiver.told
    assert (path, told["schema"], told["category"]) == (
        "/hook",
        "epochzero.notice/1",
        "key_not_found",
    )
    assert (action, what) == ("webhook notified", f"127.0.0.1: {told['job']}")


def test_a_chat_is_told_in_its_own_form(
    telling: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", receiver.url)  # What stands for Slack here.
    who = hook(telling, "http://hooks.slack.com/services/T0/B0/x")
    telling.client.post(f"{SENT}&name=resnet", content=LOG, headers=who).raise_for_status()
    assert outcomes(telling, who, 1)[0][0] == "webhook notified"
    ((path, told),) = receiver.told
    assert path == "http://hooks.slack.com/services/T0/B0/x"
    assert told["text"].startswith("resnet failed after")
    header, body = told["blocks"]
    assert header["text"]["text"] == told["text"].splitlines()[0]
    *_, link = body["elements"][0]["elements"]
    assert "epochzero show" not in str(body)
    issues = telling.client.get("/failures?format=json", headers=who).json()
    page = "https://epochzero.example.org/failures/" + quote(issues[0]["fingerprint"])
    assert link == {"type": "link", "url": page, "text": "Open"}


def test_a_failure_is_told_that_cost_more_than_a_rule_says(
    telling: Served, receiver: Receiver
) -> None:
    who = hook(telling, f"{receiver.url}/dear", what="gpu_hours", hours=10)
    for job, gpus in (("cheap", 4), ("dear", 8)):
        path = f"{SENT}&job={job}&gpus={gpus}&started=0&ended=7200"
        telling.client.post(path, content=LOG, headers=who).raise_for_status()
    assert outcomes(telling, who, 1) == [("webhook notified", "127.0.0.1: red.dear")]
    assert [told["gpu_hours"] for _, told in receiver.told] == [16.0]


def test_a_receiver_that_fails_is_told_again_later(telling: Served, receiver: Receiver) -> None:
    receiver.answers = [404, 302, 200]
    who = hook(telling, f"{receiver.url}/hook")
    telling.client.post(f"{SENT}&job=a", content=LOG, headers=who).raise_for_status()
    first, second, third = outcomes(telling, who, 3)
    assert first[0] == second[0] == "webhook not notified"
    assert first[1].endswith("it returned 404; next attempt in 0.1 s")
    assert second[1].endswith("it returned 302; next attempt in 0.2 s")
    assert third == ("webhook notified", "127.0.0.1: red.a")
    assert {path for path, _ in receiver.told} == {"/hook"}


def test_a_receiver_that_never_takes_it_is_given_up(telling: Served, receiver: Receiver) -> None:
    receiver.answers = [410]
    who = hook(telling, f"{receiver.url}/secret")
    telling.client.post(f"{SENT}&job=a", content=LOG, headers=who).raise_for_status()
    told = outcomes(telling, who, 3)
    assert [action for action, _ in told] == ["webhook not notified"] * 2 + ["webhook abandoned"]
    assert "secret" not in str(told)


def test_a_receiver_that_hangs_holds_up_no_other_team(
    telling: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The one that hangs is waited for during the whole test, however long the other one takes.
    monkeypatch.setattr(notify, "_DEADLINE_S", PATIENCE_S)
    monkeypatch.setattr(webhook_client, "_TIMEOUT_S", PATIENCE_S)
    hanging = Receiver()
    hanging.answers = [0]
    red = hook(telling, f"{hanging.url}/hook")
    blue = hook(telling, f"{receiver.url}/hook", "blue")
    for number in range(8):
        log = LOG + b"KeyError: %d\n" % number
        path = f"{SENT}&gpus=8&started=0&ended=7200"
        telling.client.post(f"{path}&job=a{number}", content=log, headers=red).raise_for_status()
    telling.client.post(f"{SENT}&job=b", content=LOG, headers=blue).raise_for_status()
    assert outcomes(telling, blue, 1) == [("webhook notified", "127.0.0.1: blue.b")]
    assert outcomes(telling, red, 0) == []
    hanging.leave.set()
    hanging.shutdown()
    hanging.server_close()


@pytest.mark.parametrize("telling", [False], indirect=True)
def test_a_name_that_leads_to_this_machine_is_not_told(telling: Served, receiver: Receiver) -> None:
    who = telling.token("red")
    # As one whose name led elsewhere when it was made.
    url = receiver.url.replace("127.0.0.1", "localhost")
    add_rule(telling.service.database, "red", url, "new_fingerprint")
    telling.client.post(f"{SENT}&job=a", content=LOG, headers=who).raise_for_status()
    (_, what), *_ = outcomes(telling, who, 1)
    assert "its address is in a private network" in what
    assert receiver.told == []


class Restarted:
    """Services on one store, one after the other."""

    def __init__(self, address: str, folder: Path, pauses: tuple[float, ...]) -> None:
        self._settings = Settings(
            address,
            folder / "spool",
            limits=LIMITS,
            private_webhooks=True,
            webhook_pauses=pauses,
        )

    @contextmanager
    def service(self) -> Iterator[Served]:
        app = create_app(self._settings)
        with TestClient(app) as client:
            yield Served(client, app.state.service)


def test_what_is_to_be_tried_again_is_told_after_a_restart(
    address: str, tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answers = [404, 404, 200]
    restarted = Restarted(address, tmp_path, (0.3, 0.3))
    with restarted.service() as first:
        who = hook(first, f"{receiver.url}/hook")
        first.client.post(f"{SENT}&job=a", content=LOG, headers=who).raise_for_status()
        outcomes(first, who, 1)
    with restarted.service() as second:
        outcomes(second, who, 2)
    with restarted.service() as third:
        told = outcomes(third, who, 3)
    assert [action for action, _ in told] == ["webhook not notified"] * 2 + ["webhook notified"]
    assert len(receiver.told) == 3
    assert len(set(receiver.identities)) == 1


@pytest.mark.parametrize("tries", [1, 2])
def test_what_a_killed_service_had_begun_is_told_again_but_not_for_ever(
    address: str, tmp_path: Path, receiver: Receiver, tries: int
) -> None:
    restarted = Restarted(address, tmp_path, (0.1,))
    with restarted.service() as first:
        first.service.deliveries.stop()
        who = hook(first, f"{receiver.url}/hook")
        first.client.post(f"{SENT}&job=a", content=LOG, headers=who).raise_for_status()
        for _ in range(tries):
            (one,) = due(first.service.database, time.time())
            assert begin(first.service.database, one, time.time())
    with restarted.service() as second:
        told = outcomes(second, who, 1)
    if tries == 1:
        assert told == [("webhook notified", "127.0.0.1: red.a")]
        assert receiver.identities == [one.identity]
    else:
        given_up = "127.0.0.1: red.a: the service stopped during the delivery"
        assert told == [("webhook abandoned", given_up)]
        assert receiver.told == []


def test_a_kill_of_the_service_loses_nothing_that_is_to_be_told(
    tmp_path: Path, receiver: Receiver
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    service = Process(tmp_path, store, "--private-webhooks")
    database = open_database(store)
    add_rule(database, TEAM, f"{receiver.url}/hook", "new_fingerprint")
    client = Client(service.url, service.token)
    client.diagnose_and_store(LOG, exit_code=1)
    service.kill()
    service.start()
    wait_until(lambda: receiver.told)
    service.kill()
    database.close()
    assert len(set(receiver.identities)) == 1
