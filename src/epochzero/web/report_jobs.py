"""Generates study reports of a team's failures, each in a separate process, one at a time.

A report of many failures takes seconds of processor time and would block all other requests of the service.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from epochzero.errors import InputError
from epochzero.scratch import scratch_directory
from epochzero.web.child_process import exit_with_parent

MOST_JOBS = 100_000
"""Maximum number of failed jobs per report, newest first."""
_MOST_S = 300.0
_FRESH_S = 3600.0
_MOST_KEPT = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """The failures of a report: those of a team's jobs that started in a period.

    Attributes:
        store: address of the database.
        source: description of the failures in the report.
        since, until: seconds since the epoch.
    """

    store: str = field(repr=False)
    team: str
    source: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class GeneratedReport:
    """A report.

    Attributes:
        lead: its summary.
        body: its contents and sections as HTML, in which all text of jobs is escaped.
        summary: the main numbers, in the JSON form of ``epochzero study failures``.
        archive: all its files, as ZIP.
        moment: when the store was read.
        is_cut: whether more jobs failed than the report covers.
    """

    lead: str
    body: str = field(repr=False)
    summary: Mapping[str, Any] = field(repr=False)
    archive: bytes = field(repr=False)
    moment: float
    is_cut: bool


class Reporting:
    """Generates reports and caches the most recent ones. Threads may share one instance."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "reports")
        self._futures: dict[Wanted, Future[GeneratedReport]] = {}
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._ended = False

    def report(self, wanted: Wanted) -> GeneratedReport | None:
        """A report of the last hour; None while it is being generated or queued.

        Each team has at most one report in progress.

        Raises:
            InputError: it cannot be generated; the next call tries again.
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
        """Stops immediately, including a report in progress."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()
        self._pool.shutdown(cancel_futures=True)

    def _is_making(self, team: str) -> bool:
        return any(r.team == team and not its.done() for r, its in self._futures.items())

    def _forget(self) -> None:
        """Removes old reports, and the oldest if there are too many."""
        done = [(request, its) for request, its in self._futures.items() if its.done()]
        old = time.time() - _FRESH_S
        for at, (request, its) in enumerate(done, _MOST_KEPT - len(done)):
            if at < 0 or (its.exception() is None and its.result().moment < old):
                del self._futures[request]

    def _make(self, wanted: Wanted) -> GeneratedReport:
        receiver, sender = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(
            target=_answer, args=(wanted, sender), name="report", daemon=True
        )
        with self._lock:
            if self._ended:
                raise InputError("The service is shutting down.")
            process.start()
            self._process = process
        sender.close()
        try:
            made: GeneratedReport | InputError = (
                receiver.recv()
                if receiver.poll(_MOST_S)
                else InputError("The report took too long. Choose a shorter period.")
            )
        except EOFError:
            made = InputError("The report could not be generated: its process exited.")
        finally:
            process.kill()
            process.join()
            receiver.close()
        if isinstance(made, InputError):
            raise made
        return made


def _answer(wanted: Wanted, sender: Connection) -> None:
    """Runs in the process: a report, or the reason for its failure."""
    threading.Thread(target=exit_with_parent, daemon=True).start()
    os.nice(10)
    try:
        sender.send(_made(wanted))
    except InputError as error:
        sender.send(error)


def _made(wanted: Wanted) -> GeneratedReport:
    from epochzero.reports import body_html, write_report
    from epochzero.store.daily_counts import Period
    from epochzero.store.database import open_database
    from epochzero.store.overview import counts
    from epochzero.store.queries import JobFilter
    from epochzero.study import read_database, study_failures

    moment = time.time()
    database = open_database(wanted.store)
    of_days = counts(database, wanted.team, Period(wanted.since, wanted.until))
    failed = sum(day.jobs for day in of_days if day.state == "failed")
    jobs = JobFilter(
        team=wanted.team, state="failed", since=wanted.since, until=wanted.until, limit=MOST_JOBS
    )
    corpus = read_database(database, jobs)
    database.close()
    studied = study_failures(replace(corpus, source=wanted.source))
    with scratch_directory() as folder:
        archive = _packed(Path(folder), write_report(studied.report, Path(folder)))
    report = studied.report
    return GeneratedReport(
        report.lead, body_html(report), studied.summary, archive, moment, failed > MOST_JOBS
    )


def _packed(folder: Path, files: list[Path]) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return packed.getvalue()
