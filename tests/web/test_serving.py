"""The service as a process: jobs that are run beside it, and it is killed and comes again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochzero.errors import InputError
from epochzero.run.reports.upload import Destination, send_attempt, unsent
from epochzero.store.database import open_database
from epochzero.store.teams import add_team, add_token
from epochzero.web.client import Client
from tests.ports import unused_port
from tests.store.jobs import Runs, whole
from tests.waiting import PATIENCE_S
from tests.web.test_sending import LOG


class Serving:
    """A service in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = unused_port()
        database = open_database(folder / "store.db")
        add_team(database, "red")
        self.to = Destination(
            f"http://127.0.0.1:{self.port}", add_token(database, "red", "ann", "admin")
        )
        database.close()
        self.start()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        words = ["--store", str(self.folder / "store.db"), "--folder", str(self.folder / "spool")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "epochzero", "serve", "--port", str(self.port), *words],
            env={**os.environ, "EPOCHZERO_HOME": str(self.folder / "home")},
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{self.to.url}/readyz", timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError("it does not answer")

    def kill(self) -> None:
        """At once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def jobs(self, count: int) -> list[dict[str, Any]]:
        """The jobs, once there are so many that are over."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = self.to.ask("GET", "/jobs?limit=1000&state=failed")["jobs"]
            if len(found) >= count or time.monotonic() > until:
                return list(found)
            time.sleep(0.1)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A service that runs."""
    one = Serving(tmp_path)
    yield one
    one.kill()


def test_what_was_acknowledged_is_there_after_a_kill(serving: Serving, tmp_path: Path) -> None:
    runs = Runs(tmp_path / "home" / "runs")
    for number in range(12):
        send_attempt(serving.to, runs.write(whole(f"job{number}")).parent)
        if number % 4 == 3:
            serving.kill()
            serving.start()
    assert len(serving.jobs(12)) == 12
    assert list(unsent(runs.folder, serving.to)) == []


def test_a_job_is_sent_while_the_service_is_away_by_a_later_command(
    serving: Serving, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "EPOCHZERO_HOME": str(tmp_path / "home"),
        "EPOCHZERO_SEND": serving.to.url,
        "EPOCHZERO_TOKEN": serving.to.token,
    }
    command = [sys.executable, "-m", "epochzero"]
    serving.kill()
    job = [*command, "run", "--", sys.executable, "-c", "{}['lr']"]
    # In a repository it would look there for the place of the fault.
    ran = subprocess.run(job, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "to retry: epochzero send" in ran.stderr
    away = subprocess.run([*command, "send"], env=environment, capture_output=True, text=True)
    assert away.returncode == 2
    serving.start()
    sent = subprocess.run([*command, "send"], env=environment, capture_output=True, text=True)
    assert sent.returncode == 0, sent.stderr
    assert [found["category"] for found in serving.jobs(1)] == ["key_not_found"]
    snapshot = json.dumps(serving.to.ask("GET", f"/jobs/{serving.jobs(1)[0]['id']}"))
    assert serving.to.token not in snapshot


def test_an_address_that_is_none_and_a_wrong_token_are_told(
    serving: Serving, tmp_path: Path
) -> None:
    for url in ("epochzero.example.org", "ftp://x", "https://ann:pw@x", "http://[x"):
        with pytest.raises(InputError, match="is not a server URL"):
            Destination(url)
    journal = Runs(tmp_path / "runs").write(whole())
    with pytest.raises(InputError, match="returned 401: a valid token is required"):
        send_attempt(Destination(serving.to.url, "ez_wrong"), journal.parent)


def test_a_client_that_never_finishes_its_request_is_let_go(serving: Serving) -> None:
    with socket.create_connection(("127.0.0.1", serving.port)) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        slow.settimeout(PATIENCE_S)
        assert slow.recv(100) == b""


def test_the_client_reads_what_it_sent(serving: Serving) -> None:
    client = Client(serving.to.url, serving.to.token)
    kept = client.diagnose_and_store(LOG, name="train", exit_code=1)
    assert kept.category == "key_not_found"
    assert [job.id for job in client.jobs(state="failed")] == [kept.job]
    assert client.job(kept.job)["summary"]["name"] == "train"
    assert client.log(kept.job, lines=1) == b"step 1\n"
    assert [one.fingerprint for one in client.fingerprints()] == [kept.fingerprint]
    assert client.overview().categories == {"key_not_found": 1}
    with pytest.raises(InputError, match="returned 404"):
        client.job("nothing")
