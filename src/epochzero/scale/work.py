"""The work of a worker: read logs, diagnose them, write a part. Input and output are plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from epochzero import compiled
from epochzero.diagnose import Catalog, Diagnoser, Facts, Signature, builtin, find_facts
from epochzero.errors import InputError
from epochzero.logs.source import Log, find_logs, rank_of
from epochzero.scale.results import Result, Row, ScaleRun, diagnosed, not_diagnosed
from epochzero.scale.sources import Part, SourceJob
from epochzero.scale.storage import Storage
from epochzero.scratch import scratch_directory

FETCHED_AT_ONCE = 16


def diagnose_part(run: ScaleRun, part: Part) -> None:
    """Diagnose the logs of a part and write it.

    Raises:
        InputError: it cannot be written.
    """
    jobs = part.jobs if Storage.at(run.source).local else _fetched(run, part.jobs)
    Result(run).write(part.name, [diagnose_job(run, job) for job in jobs])


def _fetched(run: ScaleRun, jobs: Sequence[SourceJob]) -> list[SourceJob]:
    """Return the jobs with the content of their files, read concurrently because buckets have high latency."""
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        return list(pool.map(lambda job: _fetched_job(run, job), jobs))


def _fetched_job(run: ScaleRun, job: SourceJob) -> SourceJob:
    source = Storage.at(run.source)
    try:
        files = [
            replace(file, data=source.read(file.place)) if file.data is None else file
            for file in job.files
        ]
    except InputError as error:
        return replace(job, files=(), problem=str(error))
    return replace(job, files=tuple(files))


def diagnose_job(run: ScaleRun, job: SourceJob) -> Row:
    """Return the row of one job; if it cannot be diagnosed, the row states why."""
    if job.problem:
        return not_diagnosed(job.id, job.problem)
    try:
        with _logs(run, job) as (logs, facts):
            found = diagnoser(run.signatures, run.redact).diagnose(logs, facts)
        return diagnosed(job.id, found, facts)
    except InputError as error:
        return not_diagnosed(job.id, str(error))
    except Exception as error:  # one log of a million must not end the others
        return not_diagnosed(job.id, f"{type(error).__name__}: {error}")


@cache
def diagnoser(signatures: tuple[Signature, ...], redact: bool) -> Diagnoser:
    """Create a diagnoser once per process: it takes two seconds the first time on a machine, half a second later."""
    compiled.use_shared()
    return Diagnoser(builtin() | Catalog(signatures), redact=redact).prepare()


@contextmanager
def _logs(run: ScaleRun, job: SourceJob) -> Iterator[tuple[Sequence[Log], Facts]]:
    """Yield logs and facts of a job while its files exist."""
    (first, *_) = job.files
    if first.data is not None and not job.folder and first.name == "log":
        yield [Log(job.id, text=first.data)], Facts()
        return
    with placed(run, job) as folder:
        if job.folder:
            yield find_logs([folder]), find_facts([folder])
        else:
            # Files next to a single log belong to other jobs.
            (log,) = find_logs([folder / first.name])
            yield [replace(log, name=job.id, rank=rank_of(job.id))], Facts()


@contextmanager
def placed(run: ScaleRun, job: SourceJob) -> Iterator[Path]:
    """Yield the local directory of a job's files: the original one, or a temporary copy."""
    source = Storage.at(run.source)
    if source.local and job.files and all(file.data is None for file in job.files):
        first = job.files[0]
        yield Path(source.path(first.place)).parents[len(Path(first.name).parts) - 1]
        return
    with scratch_directory() as folder:
        for file in job.files:
            place = Path(folder, file.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read(file.place) if file.data is None else file.data)
        yield Path(folder)
