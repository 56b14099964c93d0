"""Whether one team can delay the others: a team sends the worst logs as fast as the service accepts them, another small ones.

The service is a process of its own on this machine with an SQLite store; the senders share its cores. Measured is the
time until each small log is diagnosed and stored, at 20 logs a second, without and with the busy team. All kinds of bad
logs are repeated tracebacks of different lines, the slowest known text to diagnose.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from common import save
from serve_ingest import small_log, started, used

from epochzero.store.database import open_database
from epochzero.store.teams import add_team, add_token

PER_SECOND = 20
SECONDS = 15
BUSY_SENDERS = 8
BAD_TRACEBACKS = {"0.2 MB": 1_200, "2 MB": 12_000, "9 MB": 50_000, "60 MB": 330_000}
TARGETS = {"p95_s": 1.0}


def bad_log(tracebacks: int) -> bytes:
    """Repeated tracebacks."""
    frame = 'Traceback (most recent call last):\n  File "/job/train.py", line %d, in main\n    x = f(%d)\n'
    return "".join(frame % (n, n) + f"ValueError: bad {n}\n" for n in range(tracebacks)).encode()


def tokens(store: str) -> dict[str, str]:
    """A token of each team."""
    database = open_database(store)
    for team in ("busy", "calm"):
        add_team(database, team)
    found = {team: add_token(database, team, "bench", "writer") for team in ("busy", "calm")}
    database.close()
    return found


def client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=256)
    return httpx.Client(base_url=f"{url}/api/v1", timeout=300, headers=headers, limits=limits)


def latencies(calm: httpx.Client) -> list[float]:
    """Seconds from the time at which each small log was due until it is stored."""
    begin = time.perf_counter() + 0.2

    def send(number: int) -> float:
        due = begin + number / PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        answer = calm.post(
            "/diagnose-and-store", params={"exit_code": 1}, content=small_log(number)
        )
        answer.raise_for_status()
        return time.perf_counter() - due

    with ThreadPoolExecutor(128) as pool:
        return list(pool.map(send, range(PER_SECOND * SECONDS)))


def beside(busy: httpx.Client, calm: httpx.Client, log: bytes) -> dict[str, Any]:
    """The latencies while the busy team sends a log again and again."""
    ended = threading.Event()
    counts: dict[int, int] = {}
    numbers = itertools.count()

    def flood() -> None:
        while not ended.is_set():
            params = {"exit_code": 1, "name": f"bad{next(numbers)}"}
            status = busy.post("/diagnose-and-store", params=params, content=log).status_code
            counts[status] = counts.get(status, 0) + 1

    floods = [threading.Thread(target=flood) for _ in range(BUSY_SENDERS)]
    for thread in floods:
        thread.start()
    time.sleep(2.0)
    found = summary(latencies(calm))
    ended.set()
    for thread in floods:
        thread.join()
    return {**found, "bad_logs": {str(status): count for status, count in counts.items()}}


def summary(seconds: list[float]) -> dict[str, Any]:
    p50, p95 = np.percentile(seconds, (50, 95))
    return {
        "p50_s": float(p50),
        "p95_s": float(p95),
        "longest_s": max(seconds),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Measures and writes the result."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "s.db")
        token = tokens(store)
        process, url, _ = started(store, Path(folder))
        found: dict[str, Any] = {"alone": None, "beside": {}}
        with client(url, token["busy"]) as busy, client(url, token["calm"]) as calm:
            calm.post("/diagnose-and-store", content=small_log(0)).raise_for_status()
            found["alone"] = summary(latencies(calm))
            print("alone", found["alone"], file=sys.stderr)
            for name, count in BAD_TRACEBACKS.items():
                found["beside"][name] = beside(busy, calm, bad_log(count))
                print(name, found["beside"][name], file=sys.stderr)
        found["service_memory_mb"] = used(process)[1]
        process.terminate()
        process.wait()
    found["p95_s"] = max(summed["p95_s"] for summed in found["beside"].values())
    found |= {"per_second": PER_SECOND, "targets": TARGETS, "cores": os.cpu_count()}
    save("serve_fair", found)


if __name__ == "__main__":
    main()
