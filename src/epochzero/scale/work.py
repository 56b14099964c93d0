"""What a worker does: reads logs, diagnoses them, writes a part. Everything comes in and goes out as values."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from epochzero.diagnose import Catalog, Diagnoser, Facts, Signature, builtin, find_facts
from epochzero.errors import InputError
from epochzero.logs.source import Log, find_logs, rank_of
from epochzero.scale.results import Result, Row, Run, diagnosed, not_diagnosed
from epochzero.scale.sources import Part, SourceJob
from epochzero.scale.storage import Storage

FETCHED_AT_ONCE = 16


def diagnose_part(run: Run, part: Part) -> None:
    """Diagnoses the logs of a part, and writes it.

    Raises:
        InputError: it cannot be written.
    """
    jobs = part.jobs if Storage.at(run.source).local else _fetched(run, part.jobs)
    Result(run).write(part.name, [diagnose_job(run, job) for job in jobs])


def _fetched(run: Run, jobs: Sequence[SourceJob]) -> list[SourceJob]:
    """The jobs with the bytes of their files, several at a time: an answer of a bucket takes long."""
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        return list(pool.map(lambda job: _fetched_job(run, job), jobs))


def _fetched_job(run: Run, job: SourceJob) -> SourceJob:
    source = Storage.at(run.source)
    try:
        files = [
            replace(file, data=source.read(file.place)) if file.data is None else file
            for file in job.files
        ]
    except InputError as error:
        return replace(job, files=(), problem=str(error))
    return replace(job, files=tuple(files))


def diagnose_job(run: Run, job: SourceJob) -> Row:
    """The row of one job; one that cannot be diagnosed has a row that says why."""
    if job.problem:
        return not_diagnosed(job.id, job.problem)
    try:
        with _logs(run, job) as (logs, facts):
            found = diagnoser(run.signatures, run.redact).diagnose(logs, facts)
        return diagnosed(job.id, found, facts)
    except InputError as error:
        return not_diagnosed(job.id, str(error))
    except Exception as error:  # One log of a million must not end the others.
        return not_diagnosed(job.id, f"{type(error).__name__}: {error}")


@cache
def diagnoser(signatures: tuple[Signature, ...], redact: bool) -> Diagnoser:
    """Made once in a process: it takes two seconds."""
    return Diagnoser(builtin() | Catalog(signatures), redact=redact).prepare()


@contextmanager
def _logs(run: Run, job: SourceJob) -> Iterator[tuple[Sequence[Log], Facts]]:
    """Logs and facts of a job, as long as its files are there."""
    (first, *_) = job.files
    if first.data is not None and not job.folder and first.name == "log":
        yield [Log(job.id, text=first.data)], Facts()
        return
    with placed(run, job) as folder:
        if job.folder:
            yield find_logs([folder]), find_facts([folder])
        else:
            # What lies beside a single log is of other jobs.
            (log,) = find_logs([folder / first.name])
            yield [replace(log, name=job.id, rank=rank_of(job.id))], Facts()


@contextmanager
def placed(run: Run, job: SourceJob) -> Iterator[Path]:
    """The folder of a job's files on this machine: where they lie, or copies that are taken away in the end."""
    source = Storage.at(run.source)
    if source.local and job.files and all(file.data is None for file in job.files):
        first = job.files[0]
        yield Path(source.path(first.place)).parents[len(Path(first.name).parts) - 1]
        return
    with tempfile.TemporaryDirectory(prefix="epochzero-") as folder:
        for file in job.files:
            place = Path(folder, file.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read(file.place) if file.data is None else file.data)
        yield Path(folder)
