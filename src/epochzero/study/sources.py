"""Reads failures: a file of records, diagnoses of many logs, a directory of logs, a store.

Input is untrusted: a record that cannot be used is excluded, a field that cannot be used is unknown, and both are
counted for the report.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Executable, select

from epochzero import taxonomy
from epochzero.diagnose import Diagnoser, Diagnosis, Facts, find_facts
from epochzero.errors import InputError, reading
from epochzero.logs.source import GZIP, Log, find_logs
from epochzero.number_formats import counted
from epochzero.redact import redact
from epochzero.scale import read_rows
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.queries import EVERY_JOB, JobFilter, filtered
from epochzero.study.corpora import NOT_A_FAILURE, CorpusBuilder, FailureCase, FailureCorpus
from epochzero.study.parquet import is_parquet, parquet_rows

LONGEST_RECORD = 1 << 26
_AT_ONCE = 5000
_VOCABULARIES = {
    "category": taxonomy.categories,
    "root_cause": taxonomy.root_causes,
    "phase": taxonomy.phases,
    "retry": taxonomy.retries,
}

Tell = Callable[[int], None]
Record = Mapping[str, Any]


def _nothing(_: int) -> None:
    return


# A file


def read_file(
    path: Path, on_progress: Tell = _nothing, *, diagnoser: Diagnoser | None = None
) -> FailureCorpus:
    """Read the failures of a JSON Lines file, optionally compressed by gzip, or of a Parquet file.

    A record has a ``log``, which is diagnosed, or the fields of a diagnosis; ``docs/study.md`` lists them. Few
    records are in memory at a time.

    Args:
        path: the file.
        on_progress: called with the number of records read so far.
        diagnoser: of the logs; by default one with the built-in signatures.

    Raises:
        InputError: the file cannot be read, or contains no usable record.
    """
    builder = CorpusBuilder(path.name)
    # Created for the first log: loading takes a second.
    diagnoses = cache(lambda: diagnoser or Diagnoser())
    for number, record in enumerate(records_in(path, builder), 1):
        if record is not None:
            _read_record(record, str(number), builder, diagnoses)
        on_progress(builder.read)
    corpus = builder.built()
    if corpus.read and not len(corpus):
        why = max(corpus.left_out, key=lambda text: corpus.left_out[text])
        raise InputError(
            f"{path}: none of {counted(corpus.read, 'record')} can be used; most frequent reason: "
            f"{why}. The file must contain one JSON object per line, or be Parquet, with a log or a category of the "
            "taxonomy"
        )
    return corpus


def _lines(path: Path, builder: CorpusBuilder) -> Iterator[bytes]:
    """Yield the lines that are not empty; a line that is too long is excluded without being held in memory."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2).startswith(GZIP)
            file: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            yield from _lines_of(file, builder)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        builder.leave_out("the compressed data after it are damaged")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _lines_of(file: BinaryIO, builder: CorpusBuilder) -> Iterator[bytes]:
    while line := file.readline(LONGEST_RECORD):
        if len(line) < LONGEST_RECORD or line.endswith(b"\n"):
            if line.strip():
                yield line
            continue
        while (rest := file.readline(LONGEST_RECORD)) and not rest.endswith(b"\n"):
            pass
        builder.leave_out(f"is longer than {LONGEST_RECORD >> 20} MiB")


def records_in(path: Path, builder: CorpusBuilder) -> Iterator[Record | None]:
    """Yield the records of a file; None for each invalid one, which is counted as left out.

    Raises:
        InputError: the file cannot be read.
    """
    with reading(path):
        rows = parquet_rows(path) if is_parquet(path) else None
    if rows is not None:
        yield from rows
        return
    for line in _lines(path, builder):
        try:
            record = json.loads(line.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            builder.leave_out("is not JSON")
            yield None
            continue
        if not isinstance(record, dict):
            builder.leave_out("is not a JSON object")
        yield record if isinstance(record, dict) else None


def _read_record(
    record: Record, number: str, builder: CorpusBuilder, diagnoser: Callable[[], Diagnoser]
) -> None:
    log = record.get("log")
    if isinstance(log, str):
        try:
            data = log.encode("utf-8", "replace")
            found = diagnoser().diagnose([Log("log", text=data)]).to_dict()
        except InputError:
            builder.leave_out("has a log that is not text")
            return
        own = {name: value for name, value in record.items() if name not in found}
        record = {**found, **own, "log": ""}
    _add_record(record, number, builder)


def _add_record(record: Record, number: str, builder: CorpusBuilder) -> None:
    """Add a record with the fields of a diagnosis, in any of its forms."""
    category = NOT_A_FAILURE if record.get("outcome") == "no_failure" else record.get("category")
    if not isinstance(category, str) or not category:
        builder.leave_out("has neither a log nor a category")
        return
    if category not in taxonomy.categories():
        builder.leave_out("has a category that is not in the taxonomy")
        return
    fields = _Fields(record, builder)
    identity = fields.text("id") or number
    job, attempt = fields.text("job_id", "job"), fields.number("attempt")
    builder.add(
        FailureCase(
            id=identity,
            category=category,
            root_cause=fields.word("root_cause"),
            phase=fields.word("phase"),
            retry=fields.word("retry"),
            fingerprint=fields.text("fingerprint"),
            title=redact(fields.text("title")),
            line=redact(fields.text("root_text", "root.text", "line")),
            fix=redact(fields.text("fix", "fixes", "diagnosis.fixes")),
            user=fields.text("user"),
            project=fields.text("project") or _project(identity),
            name=fields.text("name"),
            job=job,
            attempt=int(attempt) if attempt else 1,
            time=fields.moment("time", "opened", "started"),
            seconds=fields.number("seconds", "cost.seconds"),
            gpu_hours=fields.number("gpu_hours", "cost.gpu_hours"),
            caught_by=fields.text("caught_by"),
            label=_label(record.get("label"), record.get("label_second"), builder),
        )
    )


def _project(identity: str) -> str:
    """Return ``owner+name`` of ``owner+name#17``."""
    project, sign, _ = identity.rpartition("#")
    return project if sign else ""


def _label(label: Any, second: Any, builder: CorpusBuilder) -> dict[str, str]:
    """Return labels by people, as far as they belong to the taxonomy."""
    if not isinstance(label, dict):
        return {}
    fields = _Fields(label, builder, "label: ")
    words = {name: word for name in _VOCABULARIES if (word := fields.word(name, unknown=""))}
    also = label.get("also")
    if isinstance(also, list):
        words["also"] = " ".join(sorted(value for value in also if value in taxonomy.categories()))
    if isinstance(second, dict):
        words["second"] = _Fields(second, builder, "second label: ").word("category", unknown="")
    return words


class _Fields:
    """The fields of a record, each under the first of its names with a usable value.

    Args:
        record: as read.
        builder: counts what cannot be used.
        front: prefix of the names that are reported.
    """

    def __init__(self, record: Record, builder: CorpusBuilder, front: str = "") -> None:
        self._record = record
        self._builder = builder
        self._front = front

    def text(self, *names: str) -> str:
        """Return a text, or the first of a list of texts; lone surrogates are replaced."""
        for name in names:
            value = self._value(name)
            if isinstance(value, list | tuple) and value:
                value = value[0]
            if isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, str) and value:
                return value.encode("utf-8", "replace").decode("utf-8")
        return ""

    def word(self, name: str, unknown: str = "unknown") -> str:
        """Return a word of the vocabulary of that name."""
        value = self._value(name)
        if value is None or value == "":
            return unknown
        if isinstance(value, str) and value in _VOCABULARIES[name]():
            return value
        self._builder.note(f"{self._front}{name} is not a term of the taxonomy")
        return unknown

    def number(self, *names: str) -> float | None:
        """Return a number that is finite and not negative."""
        for name in names:
            value = self._value(name)
            if value is None:
                continue
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and 0 <= value < math.inf
            ):
                return float(value)
            self._builder.note(f"{self._front}{name} is not a number of at least 0")
        return None

    def moment(self, *names: str) -> float | None:
        """Return a time: seconds since the epoch, or ISO 8601 (UTC by default)."""
        for name in names:
            value = self._value(name)
            if value is None or value == "":
                continue
            if (found := _moment(value)) is not None:
                return found
            self._builder.note(f"{self._front}{name} is not a time")
        return None

    def _value(self, name: str) -> Any:
        value: Any = self._record
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value


def _moment(value: Any) -> float | None:
    try:
        stamp = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(stamp, datetime):
            value = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, bool):
            return None
        datetime.fromtimestamp(value, UTC)  # raises for years outside the range
        return float(value) if value >= 0 else None
    except (ValueError, TypeError, OverflowError, OSError):
        return None


# What `diagnose --out` wrote


def read_diagnoses(address: str, on_progress: Tell = _nothing) -> FailureCorpus:
    """Read the failures among the diagnoses that ``epochzero diagnose --out`` wrote.

    Args:
        address: a directory, or ``s3://bucket/prefix``.
        on_progress: called with the number of rows read so far.

    Raises:
        InputError: it cannot be read, or its run has not ended.
    """
    builder = CorpusBuilder(address.rstrip("/").rpartition("/")[2])
    for number, row in enumerate(read_rows(address), 1):
        if row["error"]:
            builder.leave_out("could not be diagnosed")
        else:
            _add_record(row, str(number), builder)
        on_progress(builder.read)
    return builder.built()


# A folder


def read_folder(
    folder: Path, on_progress: Tell = _nothing, *, diagnoser: Diagnoser | None = None
) -> FailureCorpus:
    """Read the failures of a directory of logs.

    Each subdirectory is a job with all its logs and facts (``facts.json``, output of sacct); each log directly in
    the directory is a job of its own.

    Args:
        folder: the directory.
        on_progress: called with the number of jobs read so far.
        diagnoser: by default one with the built-in signatures.

    Raises:
        InputError: there is no log, or the directory cannot be read.
    """
    builder = CorpusBuilder(folder.name or str(folder))
    diagnoser = diagnoser or Diagnoser()
    for name, logs, inside in jobs_in(folder, builder):
        try:
            facts = find_facts([inside]) if inside else Facts()
            found = diagnoser.diagnose(logs, facts)
        except InputError as error:
            builder.leave_out(_without_path(error))
            continue
        builder.add(_case_of(found, facts, name))
        on_progress(builder.read)
    return builder.built()


def jobs_in(
    folder: Path, builder: CorpusBuilder
) -> Iterator[tuple[str, tuple[Log, ...], Path | None]]:
    """Yield name, logs and directory of each job."""
    for log in find_logs([folder]):
        if log.path is not None and log.path.parent == folder:
            yield log.name, (log,), None
    for inside in sorted(path for path in folder.iterdir() if path.is_dir()):
        try:
            yield inside.name, find_logs([inside]), inside
        except InputError as error:
            builder.leave_out(_without_path(error))


def _without_path(error: InputError) -> str:
    """Return the reason without the path: reasons are counted."""
    return f"a log that cannot be used: {str(error).split(': ', 1)[-1].split(';', 1)[0]}"


def _case_of(found: Diagnosis, facts: Facts, name: str) -> FailureCase:
    ran = facts.start is not None and facts.end is not None and facts.end >= facts.start
    return FailureCase(
        id=name,
        category=NOT_A_FAILURE if found.outcome == "no_failure" else found.category,
        root_cause=found.root_cause,
        phase=found.phase,
        retry=found.retry,
        fingerprint=found.fingerprint,
        title=found.title,
        line=found.root.text if found.root else "",
        fix=found.fixes[0] if found.fixes else "",
        time=facts.end,
        seconds=facts.end - facts.start if ran and facts.end and facts.start else None,
        gpu_hours=found.cost.gpu_hours if found.cost else None,
    )


# A store


def read_database(
    database: Database, wanted: JobFilter = EVERY_JOB, on_progress: Tell = _nothing
) -> FailureCorpus:
    """Read the failed attempts of a store, each with the diagnosis of the rank that ended first.

    Args:
        database: the store.
        wanted: which jobs.
        on_progress: called with the number of attempts read so far.

    Raises:
        StoreError: the database does not answer.
    """
    builder = CorpusBuilder(database.name)
    with database.read() as session:
        caught = _caught(session.execute(_findings(wanted)))
        seen = -1
        rows = session.execute(_failed_attempts(wanted).execution_options(yield_per=_AT_ONCE))
        for job, attempt, failure in rows:
            if attempt.id == seen:
                continue
            seen = attempt.id
            if failure is None:
                builder.leave_out("failed, and has no diagnosis")
                continue
            builder.add(_stored_case(job, attempt, failure, caught))
            on_progress(builder.read)
    return builder.built()


def _failed_attempts(wanted: JobFilter) -> Executable:
    jobs, attempts, ranks, failures = (
        schema.JobRow,
        schema.AttemptRow,
        schema.Rank,
        schema.FailureRow,
    )
    return (
        select(jobs, attempts, failures)
        .join(attempts, attempts.job_id == jobs.id)
        .join(ranks, ranks.attempt_id == attempts.id)
        .outerjoin(failures, failures.rank_id == ranks.id)
        .where(jobs.id.in_(filtered(wanted).with_only_columns(jobs.id)))
        .where(jobs.state == "failed", attempts.state == "failed")
        .order_by(jobs.started, attempts.id, failures.id.is_(None), ranks.ended, failures.id)
    )


def _findings(wanted: JobFilter) -> Executable:
    jobs, attempts, ranks, findings = (
        schema.JobRow,
        schema.AttemptRow,
        schema.Rank,
        schema.FindingRow,
    )
    return (
        select(attempts.job_id, findings.category, findings.rule)
        .join(ranks, ranks.attempt_id == attempts.id)
        .join(findings, findings.rank_id == ranks.id)
        .where(attempts.job_id.in_(filtered(wanted).with_only_columns(jobs.id)))
        .order_by(findings.id)
    )


def _caught(rows: Any) -> dict[tuple[str, str], str]:
    """Return, by job and category, the first rule that predicted such a failure."""
    found: dict[tuple[str, str], str] = {}
    for job, category, rule in rows:
        found.setdefault((job, category), rule)
    return found


def _stored_case(
    job: schema.JobRow,
    attempt: schema.AttemptRow,
    failure: schema.FailureRow,
    caught: Mapping[tuple[str, str], str],
) -> FailureCase:
    fixes = failure.diagnosis.get("fixes") or ("",)
    ended = attempt.ended
    return FailureCase(
        id=f"{job.id}/{attempt.number}",
        category=failure.category,
        root_cause=failure.root_cause,
        phase=failure.phase,
        retry=failure.retry,
        fingerprint=failure.fingerprint,
        title=failure.title,
        line=failure.root_text,
        fix=str(fixes[0]),
        user=job.user,
        project=job.folder,
        name=job.name,
        job=job.id,
        attempt=attempt.number,
        time=ended if ended is not None else failure.time,
        seconds=None if ended is None else max(0.0, ended - attempt.started),
        gpu_hours=attempt.gpu_hours,
        caught_by=caught.get((job.id, failure.category), ""),
    )
