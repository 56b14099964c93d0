"""Diagnoses logs of jobs that ran without EpochZero and converts them to records."""

from __future__ import annotations

import gc
import io
import os
import threading
import time
from functools import cached_property
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field

from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.diagnose.model import FAILURES
from epochzero.errors import InputError
from epochzero.logs.source import Log
from epochzero.run.identity import new_job
from epochzero.run.model import Concluded, Ended, Output, Record, Started
from epochzero.store.recorder import Ending
from epochzero.store.teams import job_key
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


class Diagnosing:
    """Diagnoses logs. Threads may share one instance."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def _diagnoser(self) -> Diagnoser:
        return Diagnoser()

    def start(self) -> None:
        """Loads the signatures in a background thread: the service responds before they are loaded."""
        loading = threading.Timer(_AFTER_S, self._load)
        loading.daemon = True
        loading.start()

    def _load(self) -> None:
        with self._lock:
            _ = self._diagnoser
        # What is there by now stays: looking through it for garbage, a quarter of a second each few, all requests would wait.
        gc.collect()
        gc.freeze()

    def ending(self, team: str, about: About, log: IO[bytes]) -> tuple[str, Diagnosis, Ending]:
        """Converts a finished job: its stored ID, its diagnosis, and its records.

        Args:
            team: of the job.
            about: its properties.
            log: its output; read again when the job is stored.

        Raises:
            InputError: the log is not text, or the job's end time precedes its start time.
        """
        now = time.time()
        end = now if about.ended is None else about.ended
        start = end if about.started is None else about.started
        if end < start:
            raise InputError("the job's end time precedes its start time")
        facts = Facts(exit_code=about.exit_code, start=start, end=end, gpus=about.gpus or None)
        with self._lock:  # All scans share the scanner's memory.
            found = self._diagnoser.diagnose([Log("output.log", file=log)], facts)
        # Among the 10,000 logs of one request, the time and 24 random bits alone would produce duplicate IDs.
        job = about.job or new_job() + os.urandom(8).hex()
        size = log.seek(0, io.SEEK_END)
        records = (record for record in _records(about, job, found, size, start, end))
        kept = [one for record in records if (one := cleaned(record)) is not None]
        identity = f"service:/{team}/{job}/{about.attempt}"
        return job_key(team, job), found, Ending(identity, kept, log, origin_of(team))


def _records(
    about: About, job: str, found: Diagnosis, size: int, start: float, end: float
) -> list[Record]:
    took = end - start
    code = about.exit_code
    if code is None:
        code = 1 if found.outcome in FAILURES else 0
    records: list[Record] = [
        Started(
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
        ),
        Output(end, took, "output", ("output.log",), size),
        Ended(end, took, code),
    ]
    if code:
        cost = about.gpus * took / 3600
        records.append(Concluded(end, took, diagnosis=found.to_dict(), gpu_hours=cost))
    return records
