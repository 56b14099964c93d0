"""Diagnoses logs of jobs that ran without EpochZero and converts them to records."""

from __future__ import annotations

import gc
import io
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field

from epochzero.diagnose import Diagnosis, Facts
from epochzero.diagnose.model import FAILURES
from epochzero.errors import InputError
from epochzero.run.records.identity import new_job
from epochzero.run.records.model import Conclusion, End, JobSnapshot, Output, Record, Start
from epochzero.store.issues import PARTITION
from epochzero.store.outcomes import IMAGES
from epochzero.store.recorder import Ending
from epochzero.store.teams import job_key
from epochzero.web.diagnosis_pool import DiagnosedLog, DiagnosisPool
from epochzero.web.diagnosis_worker import Budget
from epochzero.web.validation import cleaned, origin_of

_AFTER_S = 0.3
"""Delay, so that the first response does not compete for the processor."""
Word = Annotated[str, Field(max_length=500)]
Time = Annotated[float, Field(ge=0, lt=1e11)]


class About(BaseModel):
    """Properties of a job in addition to its log. Without an ID, each log is a separate job."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    job: Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{0,64}$")] = ""
    attempt: Annotated[int, Field(ge=1, le=100_000)] = 1
    name: Word = ""
    user: Word = ""
    host: Word = ""
    launcher: Word = ""
    command: Annotated[list[Word], Field(max_length=1000)] = []
    exit_code: Annotated[int, Field(ge=-255, le=255)] | None = None
    started: Time | None = None
    ended: Time | None = None
    gpus: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    partition: Word = ""
    image: Word = ""
    commit: Annotated[str, Field(max_length=100)] = ""


@dataclass(frozen=True, slots=True)
class DiagnosedJob:
    """A finished job.

    Attributes:
        job: its stored ID.
        ending: its records and its redacted log.
    """

    job: str
    found: Diagnosis
    ending: Ending

    def close(self) -> None:
        """Closes the redacted log."""
        self.ending.log.close()


class Diagnosing:
    """Diagnoses logs and converts them to records. Threads may share one instance.

    Args:
        folder: directory for redacted logs while they are stored.
        budget: of each log.
    """

    def __init__(self, folder: Path, budget: Budget) -> None:
        self._pool = DiagnosisPool(str(folder), budget)
        self._loading = threading.Timer(_AFTER_S, self._load)
        self._loading.daemon = True

    def start(self) -> None:
        """Starts the worker processes in the background: the service responds before they are ready."""
        self._loading.start()

    def stop(self) -> None:
        """Stops the worker processes."""
        self._loading.cancel()
        self._pool.stop()

    def _load(self) -> None:
        with suppress(RuntimeError):  # It is stopped already.
            self._pool.prepare()
        # Existing objects stay; scanning them for garbage would delay all requests by a quarter of a second.
        gc.collect()
        gc.freeze()

    def submit(
        self, team: str, jobs: Sequence[tuple[About, IO[bytes]]]
    ) -> Future[Sequence[DiagnosedLog]]:
        """Queues the logs of one request for diagnosis; `endings` converts the result.

        Args:
            team: of the jobs.
            jobs: properties of the jobs, with their logs.

        Raises:
            InputError: a job's end time precedes its start time.
        """
        return self._pool.submit(team, [(log, _facts(about)) for about, log in jobs])

    def ending(self, team: str, about: About, log: IO[bytes]) -> DiagnosedJob:
        """Diagnoses one job and waits for the result.

        Raises:
            InputError: the log is not text, or the job's end time precedes its start time.
        """
        (diagnosed,) = self.submit(team, [(about, log)]).result()
        return diagnosed_job(team, about, diagnosed)


def diagnosed_job(team: str, about: About, diagnosed: DiagnosedLog) -> DiagnosedJob:
    """Converts a diagnosed log to the records of a job."""
    found = diagnosed.diagnosis
    start, end = _times(about)
    # Among the 10,000 logs of one request, the time and 24 random bits alone would produce duplicate IDs.
    job = about.job or new_job() + os.urandom(8).hex()
    size = diagnosed.log.seek(0, io.SEEK_END)
    records = (record for record in _records(about, job, found, size, start, end))
    cleaned_records = [value for record in records if (value := cleaned(record)) is not None]
    identity = f"service:/{team}/{job}/{about.attempt}"
    # The workers have redacted the log.
    origin = replace(origin_of(team), text=lambda text: text)
    return DiagnosedJob(
        job_key(team, job), found, Ending(identity, cleaned_records, diagnosed.log, origin)
    )


def _facts(about: About) -> Facts:
    start, end = _times(about)
    return Facts(exit_code=about.exit_code, start=start, end=end, gpus=about.gpus or None)


def _times(about: About) -> tuple[float, float]:
    """Start and end; the current time if neither is known.

    Raises:
        InputError: the end precedes the start.
    """
    end = time.time() if about.ended is None else about.ended
    start = end if about.started is None else about.started
    if end < start:
        raise InputError("the job's end time precedes its start time")
    return start, end


def _records(
    about: About, job: str, found: Diagnosis, size: int, start: float, end: float
) -> list[Record]:
    took = end - start
    code = about.exit_code
    if code is None:
        code = 1 if found.outcome in FAILURES else 0
    variables = {IMAGES[0]: about.image} if about.image else {}
    records: list[Record] = [
        Start(
            job=job,
            attempt=about.attempt,
            name=about.name or job,
            command=tuple(about.command),
            folder="",
            host=about.host,
            user=about.user,
            pid=0,
            time=start,
            gpus=about.gpus,
            launcher=about.launcher,
            scheduler={PARTITION: about.partition} if about.partition else {},
        ),
        Output(end, took, "output", ("output.log",), size),
        End(end, took, code),
    ]
    if about.commit or variables:
        records.insert(1, JobSnapshot(start, 0.0, variables=variables, commit=about.commit))
    if code:
        cost = about.gpus * took / 3600
        records.append(Conclusion(end, took, diagnosis=found.to_dict(), gpu_hours=cost))
    return records
