"""What others notice of 10,000 connections that do nothing, or send a byte now and then; and what very large logs take.

The service is a process of its own with its own limits and an SQLite store; the connections come from this machine.
While they are held, a member of a team asks for jobs, and sends pieces of a log. Then a service of its own each is sent
20 logs of 64 MB at the same time, to be diagnosed or as a running job sends them, and 20 requests of many small logs:
measured is the most memory that it ever had.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from common import percentile, save
from serve_ingest import small_log
from serve_kill import Service

CONNECTIONS = 10_000
HELD_S = 12.0
EVERY_S = 0.1
PIECE_OF_LOG = b"".join(
    b"2026-11-21 10:00:00 step %d loss %.4f\n" % (n, 1 / (n + 1)) for n in range(30_000)
)
PIECE = b"step 1 loss 0.5\n" * 50
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
FORM = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
RULE = b"POST /api/v1/webhooks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
LONG = b"Content-Length: 90000\r\n"
TOKEN = b"Authorization: Bearer %s\r\n"
END = b"\r\n"
KINDS: dict[str, tuple[bytes, bytes]] = {
    "silent": (b"", b""),
    "heads": (HEAD, b"X"),
    "bodies": (RULE + LONG + END, b" "),
    "bodies_with_wrong_tokens": (RULE + LONG + TOKEN % b"ez_wrong" + END, b" "),
    "bodies_of_members": (RULE + LONG + TOKEN + END, b" "),
    "bodies_of_sign_ins": (FORM + LONG + END, b"a"),
}
"""What each connection begins with, and what it sends now and then."""
LOGS = 20
LOG_MB = 64
JOBS_AT_ONCE = 500


def used(pid: int) -> tuple[float, float]:
    """Processor seconds of a process, and the megabytes that it has now."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return seconds, pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def flooded(service: Service, kind: str, count: int) -> dict[str, float]:
    """What others notice of many connections of a kind."""
    begin, drop = KINDS[kind]
    if b"%s" in begin:
        begin %= service.token.encode()
    url = urlsplit(service.url)
    held = []
    before = used(service.pid)[0]
    began = time.monotonic()
    for _ in range(count):
        connection = socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=30)
        connection.sendall(begin)
        connection.setblocking(False)
        held.append(connection)
    opened = time.monotonic() - began
    memory = used(service.pid)[1]
    answered = asked(service, lambda: trickle(held, drop))
    memory = max(memory, used(service.pid)[1])
    for connection in held:
        connection.close()
    return {
        "seconds_to_open": round(opened, 2),
        "memory_mb": round(memory, 1),
        "processor_s": round(used(service.pid)[0] - before, 2),
        **answered,
    }


def trickle(held: list[socket.socket], drop: bytes) -> None:
    """A byte on each connection."""
    for connection in held:
        with suppress(OSError):
            connection.send(drop)


def asked(service: Service, meanwhile: Callable[[], None]) -> dict[str, float]:
    """How soon a member of a team is answered, who reads and writes."""
    took: list[float] = []
    refused = 0
    headers = {"Authorization": f"Bearer {service.token}"}
    end = time.monotonic() + HELD_S
    with httpx.Client(base_url=f"{service.url}/api/v1", headers=headers, timeout=60) as client:
        trickled = time.monotonic()
        place = f"/jobs/flood{int(end)}/attempts/1/ranks/all/logs/output.log"
        size = 0
        while time.monotonic() < end:
            began = time.monotonic()
            read = client.get("/jobs")
            between = time.monotonic()
            wrote = client.put(place, params={"offset": size}, content=PIECE)
            took += [1000 * (between - began), 1000 * (time.monotonic() - between)]
            refused += read.is_error + wrote.is_error
            size += len(PIECE)
            if time.monotonic() - trickled > 3:
                meanwhile()
                trickled = time.monotonic()
            time.sleep(EVERY_S)
    return {
        "asked": len(took),
        "refused": refused,
        "median_ms": round(statistics.median(took), 1),
        "p95_ms": round(percentile(took, 0.95), 1),
        "longest_ms": round(max(took), 1),
    }


def at_once(send: Callable[[httpx.Client, int], httpx.Response]) -> dict[str, float]:
    """What so many senders at the same time take of a service of their own."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), f"sqlite:///{folder}/store.db")
        before, headers = used(service.pid)[0], {"Authorization": f"Bearer {service.token}"}
        began = time.monotonic()
        with (
            httpx.Client(base_url=f"{service.url}/api/v1", headers=headers, timeout=900) as client,
            ThreadPoolExecutor(LOGS) as pool,
        ):
            answers = list(pool.map(lambda number: send(client, number), range(LOGS)))
        took = time.monotonic() - began
        status = Path(f"/proc/{service.pid}/status").read_text()
        found = {
            "seconds": round(took, 1),
            "processor_s": round(used(service.pid)[0] - before, 1),
            "refused": sum(answer.is_error for answer in answers),
            "memory_mb": round(int(status.split("VmHWM:")[1].split()[0]) / 1024, 1),
        }
        service.kill()
    return found


def large(number: int) -> Iterator[bytes]:
    """A log of a job that failed, in pieces; no two have lines in common."""
    digits = b"0123456789"
    other = bytes.maketrans(digits, bytes(random.Random(number).sample(digits, len(digits))))
    steps = PIECE_OF_LOG.translate(other)
    for _ in range((LOG_MB << 20) // len(steps) - 1):
        yield b"epoch %d of sender %d\n" % (number, number)
        yield steps
    yield small_log(number).encode()


def to_diagnose(client: httpx.Client, number: int) -> httpx.Response:
    """Sends a large log to be diagnosed."""
    return client.post(f"/diagnose-and-store?job=j{number}&exit_code=1", content=large(number))


def while_it_runs(client: httpx.Client, number: int) -> httpx.Response:
    """Sends a large log as a running job does, but in one piece."""
    return client.put(
        f"/jobs/j{number}/attempts/1/ranks/all/logs/output.log", content=large(number)
    )


def in_bulk(client: httpx.Client, number: int) -> httpx.Response:
    """Sends many small logs."""
    logs = range(JOBS_AT_ONCE * number, JOBS_AT_ONCE * (number + 1))
    lines = (json.dumps({"log": small_log(n), "job": f"j{n}", "exit_code": 1}) for n in logs)
    return client.post("/diagnose-and-store/bulk", content="\n".join(lines))


def main() -> None:
    """Measures each kind and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=CONNECTIONS, metavar="N")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < options.connections + 100:
        sys.exit(f"this system allows {hard} files a process: ulimit -Hn, or --connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found: dict[str, Any] = {"connections": options.connections}
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), f"sqlite:///{folder}/store.db")
        found["memory_before_mb"] = round(used(service.pid)[1], 1)
        found["alone"] = asked(service, lambda: None)
        for kind in KINDS:
            found[kind] = flooded(service, kind, options.connections)
            print(kind, found[kind], flush=True)
        service.kill()
    found["logs_at_once"] = {"logs": LOGS, "megabytes_each": LOG_MB, "jobs_a_request": JOBS_AT_ONCE}
    for send in (to_diagnose, while_it_runs, in_bulk):
        found["logs_at_once"][send.__name__] = at_once(send)
        print(send.__name__, found["logs_at_once"][send.__name__], flush=True)
    save("serve_flood", found)


if __name__ == "__main__":
    main()
