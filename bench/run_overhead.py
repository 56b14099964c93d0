"""What ``epochzero run`` costs a job: its start, and its wall time while it prints.

The job does a fixed amount of work and prints as it goes: 1,000 lines a second, and 50 MB a second,
each for about ten seconds when it runs bare. It takes its own time, so that starting up, which is
measured apart, is not counted twice. Last, a program that does nothing but print. The reader of all output
is ``cat > /dev/null``, so that only what is kept reaches the disk. Beside it: the job bare, bare once
again, which tells how far numbers can be trusted, through ``tee``, and in ``script -q -c``. Runs are
interleaved; medians are kept, of the start also the fastest.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import percentile, save

STARTS = 20
SECONDS = 10.0
UNLIMITED_BYTES = 1_000_000_000
WANTED = {"start_s": 0.2, "lines_overhead": 0.01, "megabytes_overhead": 0.05}
"""What is wanted at most: seconds more, and shares of the bare wall time."""

AUTOGROUP = Path("/proc/self/autogroup")
# Its arguments: how many pieces, the work before each, its lines, their length, where its time goes, and
# the priority of its session: a new session, as ours is for the job, does not inherit that (sched(7)).
JOB = """
import sys, time
def work(pieces, rounds, lines, length):
    text = ("x" * (length - 1) + "\\n") * lines
    for _ in range(pieces):
        for _ in range(rounds): pass
        sys.stdout.write(text)
        sys.stdout.flush()
if sys.argv[6]: open("/proc/self/autogroup", "w").write(sys.argv[6])
began = time.perf_counter()
work(*map(int, sys.argv[1:5]))
open(sys.argv[5], "w").write(str(time.perf_counter() - began))
"""


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="run-overhead-") as name:
        folder = Path(name)
        os.environ["EPOCHZERO_HOME"] = str(folder / "home")
        numbers: dict[str, object] = {"start": _starts(folder)}
        a_millisecond = _iterations(0.001)
        # 50 MB a second are a piece of 50 kB each millisecond.
        for what, lines, length in (("lines", 1, 80), ("megabytes", 500, 100)):
            pieces = round(options.seconds * 1000)
            job = [sys.executable, "-c", JOB, *map(str, (pieces, a_millisecond, lines, length))]
            numbers[what] = _overheads(job, folder, options.repeats)
        numbers["unlimited"] = _unlimited(folder, options.repeats)
    numbers["wanted"] = WANTED
    for what, found in numbers.items():
        print(what, found)
    save("run_overhead", numbers)


def _wrapped(command: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """The command in each way of running it."""
    line = shlex.join(command)
    log = shlex.quote(str(folder / "kept.log"))
    ways = {
        "bare": [*command],
        "again": [*command],
        "epochzero": [sys.executable, "-m", "epochzero", "run", "--", *command],
        "tee": ["sh", "-c", f"{line} 2>&1 | tee {log}"],
    }
    if shutil.which("script"):
        ways["script"] = ["script", "-q", "-c", line, str(folder / "kept.log")]
    return ways


def _run(command: Sequence[str], folder: Path) -> float:
    """Seconds from start to end."""
    shutil.rmtree(folder / "home", ignore_errors=True)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        began = time.perf_counter()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=reader.stdin, check=True)
        return time.perf_counter() - began


def _starts(folder: Path) -> dict[str, float]:
    """Seconds that ``true`` takes more than bare: medians, and how ours spreads."""
    ways = _wrapped(["true"], folder)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(STARTS + 1):
        for way, command in ways.items():
            taken[way].append(_run(command, folder))
    bare = statistics.median(taken["bare"][1:])
    found = {way: round(statistics.median(times[1:]) - bare, 4) for way, times in taken.items()}
    fastest = min(taken["epochzero"][1:]) - min(taken["bare"][1:])
    p90 = percentile(taken["epochzero"][1:], 0.9) - bare
    return found | {"epochzero_p90": round(p90, 4), "epochzero_fastest": round(fastest, 4)}


def _overheads(job: Sequence[str], folder: Path, repeats: int) -> dict[str, float]:
    """The share by which the job takes longer by its own clock; ``bare_s``: its seconds bare."""
    clock = folder / "seconds"
    ways = _wrapped([*job, str(clock), _priority()], folder)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, command in ways.items():
            _run(command, folder)
            taken[way].append(float(clock.read_text()))
    bare = statistics.median(taken.pop("bare"))
    found = {way: round(statistics.median(times) / bare - 1, 4) for way, times in taken.items()}
    return found | {"bare_s": round(bare, 3)}


def _unlimited(folder: Path, repeats: int) -> dict[str, float]:
    """Megabytes a second of a program that only prints."""
    ways = _wrapped(["head", "-c", str(UNLIMITED_BYTES), "/dev/zero"], folder)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, command in ways.items():
            taken[way].append(_run(command, folder))
    megabytes = UNLIMITED_BYTES / 1e6
    return {way: round(megabytes / statistics.median(times), 1) for way, times in taken.items()}


def _priority() -> str:
    """Nice value of our session; empty where there is no such thing, or it is the usual one."""
    told = AUTOGROUP.read_text().split() if AUTOGROUP.exists() else ["0"]
    return "" if told[-1] == "0" else told[-1]


def _iterations(seconds: float) -> int:
    """How often Python goes round an empty loop in so much time."""
    rounds = 1_000_000
    fastest = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(rounds):
            pass
        fastest = min(fastest, time.perf_counter() - began)
    return round(rounds * seconds / fastest)


if __name__ == "__main__":
    main()
