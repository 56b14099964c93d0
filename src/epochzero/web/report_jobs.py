"""Study reports of a team's failures, each made in a process of its own, one after the other.

A report of many failures takes seconds of a processor: in a process of the service itself all other requests
would wait for it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from io import BytesIO
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from epochzero.errors import InputError

MOST_JOBS = 100_000
"""Failed jobs that one report is of, the newest."""
_MOST_S = 300.0
_FRESH_S = 3600.0
_MOST_KEPT = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of which failures: those of a team's jobs that started in a period.

    Attributes:
        store: address of the database.
        source: what the failures are of, in the report's words.
        since, until: seconds since the epoch.
    """

    store: str = field(repr=False)
    team: str
    source: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Made:
    """A report.

    Attributes:
        lead: what it comes to.
        body: its contents and sections as HTML, in which all text of jobs is escaped.
        summary: the numbers that matter, in the JSON form of ``epochzero study failures``.
        archive: all its files, as ZIP.
        moment: when it was asked of the store.
        is_cut: whether more jobs failed than it is of.
    """

    lead: str
    body: str = field(repr=False)
    summary: Mapping[str, Any] = field(repr=False)
    archive: bytes = field(repr=False)
    moment: float
    is_cut: bool


class Reporting:
    """Makes reports and keeps the last ones. Threads may share one."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "reports")
        self._futures: dict[Wanted, Future[Made]] = {}
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._ended = False

    def report(self, wanted: Wanted) -> Made | None:
        """A report that was made within the last hour; None while it is being made, or waits for its turn.

        A team has one at a time in the making.

        Raises:
            InputError: it cannot be made; the next time it is tried again.
        """
        with self._lock:
            self._forget()
            future = self._futures.get(wanted)
            if future is None:
                if not self._ended and not self._is_making(wanted.team):
                    self._futures[wanted] = self._pool.submit(self._make, wanted)
                return None
            if not future.done():
                return None
            if future.exception() is not None:
                del self._futures[wanted]
        return future.result()

    def stop(self) -> None:
        """Ends at once, also what is being made."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()
        self._pool.shutdown(cancel_futures=True)

    def _is_making(self, team: str) -> bool:
        return any(one.team == team and not its.done() for one, its in self._futures.items())

    def _forget(self) -> None:
        """Takes out what is old, and the first of too many."""
        done = [(one, its) for one, its in self._futures.items() if its.done()]
        old = time.time() - _FRESH_S
        for at, (one, its) in enumerate(done, _MOST_KEPT - len(done)):
            if at < 0 or (its.exception() is None and its.result().moment < old):
                del self._futures[one]

    def _make(self, wanted: Wanted) -> Made:
        receiver, sender = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(
            target=_answer, args=(wanted, sender), name="report", daemon=True
        )
        with self._lock:
            if self._ended:
                raise InputError("The service ends.")
            process.start()
            self._process = process
        sender.close()
        try:
            made: Made | InputError = (
                receiver.recv()
                if receiver.poll(_MOST_S)
                else InputError("The report took too long. Choose a shorter period.")
            )
        except EOFError:
            made = InputError("The report could not be made: its process ended.")
        finally:
            process.kill()
            process.join()
            receiver.close()
        if isinstance(made, InputError):
            raise made
        return made


def _answer(wanted: Wanted, sender: Connection) -> None:
    """What the process does: a report, or why there is none."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(10)
    try:
        sender.send(_made(wanted))
    except InputError as error:
        sender.send(error)


def _end_with_parent() -> None:
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)


def _made(wanted: Wanted) -> Made:
    from epochzero.reports import body_html, write_report
    from epochzero.store.daily_counts import Period
    from epochzero.store.database import open_database
    from epochzero.store.overview import counts
    from epochzero.store.queries import JobFilter
    from epochzero.study import read_database, study_failures

    moment = time.time()
    database = open_database(wanted.store)
    of_days = counts(database, wanted.team, Period(wanted.since, wanted.until))
    failed = sum(one.jobs for one in of_days if one.state == "failed")
    jobs = JobFilter(
        team=wanted.team, state="failed", since=wanted.since, until=wanted.until, limit=MOST_JOBS
    )
    corpus = read_database(database, jobs)
    database.close()
    studied = study_failures(replace(corpus, source=wanted.source))
    with TemporaryDirectory() as folder:
        archive = _packed(Path(folder), write_report(studied.report, Path(folder)))
    report = studied.report
    return Made(
        report.lead, body_html(report), studied.summary, archive, moment, failed > MOST_JOBS
    )


def _packed(folder: Path, files: list[Path]) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return packed.getvalue()
