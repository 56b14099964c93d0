"""Many logs into one table: what a second worker brings, what Ray costs, what kills lose, how it grows;
and one large log.

The logs are those of the unlabelled reports, again and again under other names. Time is that of the whole
command, its start too; processor time is that of every process that it started, Ray's too. The growth is
measured as far as `--largest` says and extrapolated from there, and so it is said. The model of 10^8 logs a
day (`scale_model.py`) gets what was measured on few logs, and is checked on the many. One large log is made
of those of the lab.

Each part has a result file of its own. `--minutes` ends a long part early, and `--go-on` adds to what the same code
has measured before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from common import RESULTS, SEED, data_file, measured_before, percentile, save, scratch
from scale_model import ASSUMED, Fleet, Measured, simulate

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log, find_logs
from epochzero.scale import read_rows

DATA = "failures/unlabelled.jsonl.gz"
LAB = Path(__file__).resolve().parent.parent / "lab" / "logs"
TOKEN = "EPOCHZERO_BENCH"
SAMPLED_EVERY_S = 0.1
OVERHEAD_LOGS = 20_000
PORTS = (
    "port",
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "runtime-env-agent-port",
    "metrics-export-port",
)
"""Of a Ray cluster. Where they are given, it need not wait for processes that report them, for which it has little
patience on a busy machine."""
ATTEMPTS = 3
"""To start it."""
ROWS_AT_ONCE = 5_000
FITTED = 3
"""So many of the smallest runs the model gets."""
ROWS_POLLED_EVERY_S = 0.02
EARLY = 0.1
"""Share of the drivers that are disturbed before they have written a row. Such kills test little and are not counted with the others."""
WORKERS = (b"forkserver", b"ray::_call", b"ray::IDLE")
"""In their command lines. Ray's agents begin with `ray::` too, and a node ends with its agents."""
KILLS_A_LIFE = 3
"""From the first row on, at moments that do not depend on each other."""
DRIVERS = 0.25
"""Share of the kills. The others are of workers, since a new driver takes longer to start."""

Numbers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the command.

    Attributes:
        seconds, processor_seconds: of all its processes.
        peak_memory_mb: of the process that was started.
        summary: what it printed.
        rows: of its result, where they were asked for.
    """

    seconds: float
    processor_seconds: float
    peak_memory_mb: float
    summary: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] = ()

    def described(self) -> dict[str, float]:
        return {
            "seconds": round(self.seconds, 2),
            "processor_seconds": round(self.processor_seconds, 2),
            "peak_memory_mb": round(self.peak_memory_mb, 1),
        }


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20_000, help="for one and two workers")
    parser.add_argument("--largest", type=int, default=100_000, help="of the growth: 10^3 ... this")
    parser.add_argument("--kills", type=int, default=100, help="of workers and drivers together")
    parser.add_argument("--kill-logs", type=int, default=3_000, help="that are diagnosed meanwhile")
    parser.add_argument("--log-bytes", type=int, default=2 << 30, help="of the one large log")
    parser.add_argument("--only", action="append", choices=STEPS, help="may be repeated")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which nothing new is begun, of each part")  # fmt: skip
    parser.add_argument("--go-on", action="store_true", help="with the saved kills and growth")
    options = parser.parse_args()
    for name in options.only or STEPS:
        print(f"{name} ...", flush=True)
        if name.startswith("ray") and importlib.util.find_spec("ray") is None:
            print("not run: Ray is not installed")
            continue
        options.ends = time.monotonic() + 60 * options.minutes
        numbers = STEPS[name](options, measured_before(f"scale_{name}") if options.go_on else {})
        print(json.dumps(numbers, indent=1), flush=True)
        save(f"scale_{name}", numbers, data=[data_file(DATA).described()])


def _source(count: int) -> Path:
    """So many logs in a Parquet file."""
    path = scratch() / f"scale-mixed-{count}.parquet"
    if path.exists():
        return path
    texts = [record["log"] for record in data_file(DATA).records]
    # Mixed, since neighbours are of one project: a few logs are then like the many.
    draw = random.Random(SEED)
    schema = pyarrow.schema([("id", pyarrow.string()), ("log", pyarrow.string())])
    new = path.with_suffix(".new")
    with pyarrow.parquet.ParquetWriter(new, schema) as table:
        for start in range(0, count, ROWS_AT_ONCE):
            names = [f"log-{n:08}" for n in range(start, min(count, start + ROWS_AT_ONCE))]
            logs = draw.choices(texts, k=len(names))
            table.write_batch(pyarrow.record_batch([names, logs], schema))
    return new.rename(path)


def _command(source: Path, out: str, engine: str, workers: int) -> list[str]:
    return [
        sys.executable, "-m", "epochzero", "diagnose", str(source), "--out", out, "--engine", engine,
        "--workers", str(workers), "--format", "json",
    ]  # fmt: skip


def _run(
    count: int,
    engine: str = "local",
    workers: int = 1,
    source: Path | None = None,
    keep: bool = False,
    cluster: _Cluster | None = None,
) -> Ran:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as answer:
        clock = _Clock(cluster.token if cluster else secrets.token_hex(8))
        began = time.perf_counter()
        command = _command(source or _source(count), f"{folder}/out", engine, workers)
        command += ["--address", cluster.address] if cluster else []
        child = subprocess.Popen(command, stdout=answer, env={**os.environ, TOKEN: clock.token})
        with clock:
            _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
        if status:
            sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        answer.seek(0)
        rows = list(read_rows(f"{folder}/out")) if keep else ()
        ran = Ran(seconds, clock.seconds, used.ru_maxrss / 1024, json.load(answer), rows)
    if ran.summary["logs"] != count:
        sys.exit(f"{count} logs, {ran.summary['logs']} rows")
    return ran


class _Clock:
    """Processor seconds of all processes that inherit a token, seen while they live; without those before."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._before = _ticks(token)
        self._ticks: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        spent = sum(self._ticks.values()) - sum(self._before.values())
        return spent / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._over.wait(SAMPLED_EVERY_S):
            self._ticks |= _ticks(self.token)


def _ticks(token: str) -> dict[str, int]:
    """Processor time of each process that has the token."""
    ticks = {}
    for process in _processes(token):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks[process.name] = int(fields[11]) + int(fields[12])
    return ticks


class _Cluster:
    """A Ray cluster that runs before the command and after it, as on a platform.

    Args:
        cores: of its one node.
    """

    def __init__(self, cores: int) -> None:
        self.token = secrets.token_hex(8)
        with ExitStack() as opened:
            sockets = [opened.enter_context(socket.socket()) for _ in PORTS]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in sockets]
        self.address = f"127.0.0.1:{ports[0]}"
        self._command = [
            str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--num-cpus={cores}",
            "--node-ip-address=127.0.0.1", "--include-dashboard=false", "--disable-usage-stats",
            *(f"--{name}={port}" for name, port in zip(PORTS, ports, strict=True)),
        ]  # fmt: skip

    def __enter__(self) -> _Cluster:
        # Who connects must have the token too.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        for _ in range(ATTEMPTS):
            environment = {**os.environ, TOKEN: self.token}
            self._head = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=environment)
            if any(b"--block" in line for line in self._head.stdout or ()):
                return self
            self._end()
        sys.exit("Ray does not start")

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._head.terminate()
        self._head.wait()
        for process in _processes(self.token):
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)


def _processes(token: str) -> list[Path]:
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(process)
        except OSError:
            continue
    return found


def _workers(options: argparse.Namespace, _: Numbers) -> Numbers:
    count = options.logs
    one, two = _run(count), _run(count, workers=2)
    return {
        "logs": count,
        "one": one.described(),
        "two": two.described(),
        "speed_up": round(one.seconds / two.seconds, 2),
        "speed_up_of_processor_time": round(2 * one.processor_seconds / two.processor_seconds, 2),
        "ideal": _ideal(count),
        "load_average": os.getloadavg()[0],
    }


def _ideal(count: int) -> Numbers:
    """The same logs in memory, diagnosed by one and two plain processes that have loaded all signatures before."""
    texts = pyarrow.parquet.read_table(_source(count), columns=["log"])["log"].to_pylist()
    diagnoser = Diagnoser().prepare()
    seconds = []
    for number in (1, 2):
        workers = [
            multiprocessing.get_context("fork").Process(target=_diagnose, args=(diagnoser, texts[n::number]))
            for n in range(number)
        ]  # fmt: skip
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds.append(time.perf_counter() - began)
    one, two = seconds
    return {"one": round(one, 2), "two": round(two, 2), "speed_up": round(one / two, 2)}


def _diagnose(diagnoser: Diagnoser, texts: Sequence[str]) -> None:
    for text in texts:
        diagnoser.diagnose([Log("log", text=text.encode())]).to_dict()


def _growth(options: argparse.Namespace, before: Numbers) -> Numbers:
    largest = options.largest
    sizes = [1_000]
    while sizes[-1] < largest:
        sizes.append(
            min(largest, sizes[-1] * 3 if str(sizes[-1])[0] == "1" else sizes[-1] // 3 * 10)
        )
    runs = dict(before.get("runs", {}))
    for size in sizes:
        if str(size) not in runs and (len(runs) < FITTED or time.monotonic() < options.ends):
            runs[str(size)] = _run(size, workers=2).described()
    found = Measured.of({int(size): run["processor_seconds"] for size, run in runs.items()})
    return {
        "runs": runs,
        "processor_seconds_a_log": round(found.log_seconds, 6),
        "processor_seconds_to_start": round(found.start_seconds, 2),
        "processor_seconds_of_a_million": round(found.start_seconds + found.log_seconds * 1e6),
        "measured_up_to": max(map(int, runs)),
        "load_average": os.getloadavg()[0],
    }


def _overhead(*_: object) -> Numbers:
    """Ray beside the processes of this machine, with one worker: at the start, and for each log.

    Once in a cluster that runs anyway, whose processes count while the command runs, and once with a cluster that the
    command starts.
    """
    few, many = 250, OVERHEAD_LOGS
    runs = {
        (engine, count): _run(count, engine) for engine in ("local", "ray") for count in (few, many)
    }
    with _Cluster(1) as cluster:
        _run(few, "ray", cluster=cluster)  # as the local engine has run before
        running = _run(many, "ray", cluster=cluster)
    local = runs["local", many].processor_seconds

    def slope(engine: str, what: str) -> float:
        more = getattr(runs[engine, many], what) - getattr(runs[engine, few], what)
        return float(more / (many - few))

    return {
        "logs": many,
        **{f"{engine}_{count}": ran.described() for (engine, count), ran in runs.items()},
        "running_cluster": running.described(),
        "share_of_processor_seconds": round(running.processor_seconds / local - 1, 3),
        "share_of_processor_seconds_with_its_start": round(
            runs["ray", many].processor_seconds / local - 1, 3
        ),
        "share_of_seconds_a_log": round(slope("ray", "seconds") / slope("local", "seconds") - 1, 3),
        "share_of_processor_seconds_a_log": round(
            slope("ray", "processor_seconds") / slope("local", "processor_seconds") - 1, 3
        ),
        "seconds_more_to_start": round(runs["ray", few].seconds - runs["local", few].seconds, 2),
        "logs_from_which_ray_takes_8_percent_more_processor_time": _logs_for(0.08, runs),
        "load_average": os.getloadavg()[0],
    }


def _logs_for(share: float, runs: Mapping[tuple[str, int], Ran]) -> int | None:
    """Of how many logs Ray takes but so much more processor time, its start included; None where each
    log alone takes more.
    """
    of = {}
    for engine in ("local", "ray"):
        spent = {
            count: ran.processor_seconds for (one, count), ran in runs.items() if one == engine
        }
        of[engine] = Measured.of(spent)
    more = of["ray"].start_seconds - (1 + share) * of["local"].start_seconds
    left = (1 + share) * of["local"].log_seconds - of["ray"].log_seconds
    return round(more / left) if left > 0 else None


def _one_log(options: argparse.Namespace, _: Numbers) -> Numbers:
    """One log of many ranks, read in parts by one and two workers, and in one go."""
    path = _large_log(options.log_bytes)
    runs = {workers: _run(1, workers=workers, source=path, keep=True) for workers in (1, 2)}
    diagnoser = Diagnoser()
    (log,) = find_logs([path])
    began, spent = time.perf_counter(), time.process_time()
    whole = diagnoser.diagnose([replace(log, name=path.name)]).to_dict()
    seconds, processor = time.perf_counter() - began, time.process_time() - spent
    expected = json.loads(json.dumps(whole))
    rows = [ran.rows[0] for ran in runs.values()]
    return {
        "bytes": path.stat().st_size,
        "events": len(diagnoser.read(log).events),
        "in_one_go": {"seconds": round(seconds, 2), "processor_seconds": round(processor, 2)},
        **{f"workers_{workers}": ran.described() for workers, ran in runs.items()},
        "speed_up": round(runs[1].seconds / runs[2].seconds, 2),
        "same_answer": all({key: row[key] for key in expected} == expected for row in rows),
        "load_average": os.getloadavg()[0],
    }


def _large_log(size: int) -> Path:
    """The logs of the lab, each of one of eight ranks, with training between them."""
    path = scratch() / f"scale-one-{size}.log"
    if path.exists():
        return path
    draw = random.Random(SEED)
    logs = [one.read_bytes().splitlines() for one in sorted(LAB.rglob("*.log"))]
    training = b"".join(
        b"[rank%d]: step %d loss %.4f, %d samples/s\n" % (step % 8, step // 8, 9 / (step + 1), 900 + step % 7)
        for step in range(20_000)
    )  # fmt: skip
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        while file.tell() < size:
            for _ in range(draw.randint(1, 12)):
                file.write(training)
            rank = b"[rank%d]: " % draw.randrange(8)
            file.writelines(rank + line + b"\n" for line in draw.choice(logs))
    return new.rename(path)


def _local_kills(options: argparse.Namespace, before: Numbers) -> Numbers:
    return _kills("local", options, before)


def _ray_kills(options: argparse.Namespace, before: Numbers) -> Numbers:
    with _Cluster(2) as cluster:
        return _kills("ray", options, before, cluster)


@dataclass(frozen=True, slots=True)
class Life:
    """Of a driver that nobody disturbs.

    Attributes:
        seconds_before: from its start until the first rows of the result are written.
        seconds_after: from then until its end.
    """

    seconds_before: float
    seconds_after: float


def _kills(
    engine: str, options: argparse.Namespace, before: Numbers, cluster: _Cluster | None = None
) -> Numbers:
    """Ends workers and drivers by SIGKILL at random moments, until so many were ended."""
    count = options.kill_logs
    # Results without it have kills of drivers that had hardly begun.
    before = before if before.get("logs") == count and "undisturbed" in before else {}
    done = dict(before.get("kills", {"driver": 0, "worker": 0, "before_the_first_row": 0}))
    complete = before.get("results", 0)
    wrong = before.get("results_with_a_loss_or_repeat", 0)
    draw = random.Random(SEED + sum(done.values()))
    began = time.monotonic()
    command = _command(_source(count), "", engine, 2)
    command += ["--address", cluster.address] if cluster else []
    environment = {**os.environ, TOKEN: cluster.token if cluster else secrets.token_hex(8)}
    life: Life | None = None

    def enough() -> bool:
        return done["driver"] + done["worker"] >= options.kills or time.monotonic() > options.ends

    while life is None or not enough():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            command[command.index("--out") + 1] = str(out)
            if life is None:
                life = _undisturbed(_Driver(command, environment, out))
                continue
            while not _ended_by_itself(
                _Driver(command, environment, out), life, done, enough, draw
            ):
                pass
            complete += 1
            wrong += not _is_exact(out, count)
            print(f"    {done}, {complete} results, {wrong} wrong", flush=True)
    return {
        "logs": count,
        "kills": done,
        "results": complete,
        "results_with_a_loss_or_repeat": wrong,
        "undisturbed": asdict(life),
        "seconds": round(before.get("seconds", 0) + time.monotonic() - began, 1),
        "load_average": os.getloadavg()[0],
    }


class _Driver:
    """A command that writes a result, started.

    Args:
        out: directory of the result, which may have parts of an earlier driver.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], out: Path) -> None:
        self.token, self._out = environment[TOKEN], out
        self.parts_before = self.parts
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)

    @property
    def parts(self) -> int:
        return sum(1 for _ in self._out.glob("part-*.parquet"))

    def wait_for_rows(self) -> None:
        while self.process.poll() is None and self.parts == self.parts_before:
            time.sleep(ROWS_POLLED_EVERY_S)


def _undisturbed(driver: _Driver) -> Life:
    began = time.perf_counter()
    driver.wait_for_rows()
    first = time.perf_counter()
    if status := driver.process.wait():
        sys.exit(f"the driver ended with {status}")
    return Life(round(first - began, 2), round(time.perf_counter() - first, 2))


def _ended_by_itself(
    driver: _Driver,
    life: Life,
    done: dict[str, int],
    enough: Callable[[], bool],
    draw: random.Random,
) -> bool:
    """Kills the workers of a driver, and perhaps the driver, at moments that are spread over its life."""
    process, early = driver.process, draw.random() < EARLY
    while process.poll() is None:
        if early:
            time.sleep(draw.uniform(0, life.seconds_before))
        else:
            driver.wait_for_rows()
            time.sleep(draw.expovariate(KILLS_A_LIFE / life.seconds_after))
        if enough() or process.poll() is not None:
            break
        early, which = False, "driver" if draw.random() < DRIVERS else "worker"
        workers = _workers_of(driver.token, process.pid)
        if which == "worker" and not workers:
            continue
        with suppress(ProcessLookupError):
            os.kill(process.pid if which == "driver" else draw.choice(workers), signal.SIGKILL)
            done[which if driver.parts > driver.parts_before else "before_the_first_row"] += 1
        if which == "driver":
            break
    if process.wait() not in (0, -signal.SIGKILL):
        sys.exit(f"the driver ended with {process.returncode}")
    return process.returncode == 0


def _workers_of(token: str, driver: int) -> list[int]:
    found = []
    for process in _processes(token):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if any(mark in line for mark in WORKERS) and int(process.name) != driver:
            found.append(int(process.name))
    return found


def _is_exact(out: Path, count: int) -> bool:
    """Whether each log has one row, and none of them says that its worker was lost."""
    parts = json.loads((out / "manifest.json").read_bytes())["parts"]
    tables = [pyarrow.parquet.read_table(out / part, columns=["id", "error"]) for part in parts]
    rows = pyarrow.concat_tables(tables)
    names = set(rows["id"].to_pylist())
    lost = [error for error in rows["error"].to_pylist() if "worker" in error]
    return len(names) == rows.num_rows == count and not lost


def _model(*_: object) -> Numbers:
    """The simulation beside what was measured, and a day of 10^8 logs.

    It gets the smallest runs, and is checked on the others.
    """
    growth = json.loads((RESULTS / "scale_growth.json").read_bytes())["numbers"]
    runs = {int(size): run for size, run in growth["runs"].items()}
    spent = {size: run["processor_seconds"] for size, run in runs.items()}
    few, many = sorted(spent)[:FITTED], sorted(spent)[FITTED:]
    measured = Measured.of({size: spent[size] for size in few})
    checked = []
    for size in many:
        simulated = simulate(measured, Fleet.here(size))
        checked.append({
            "logs": size,
            "measured_processor_seconds": spent[size],
            "simulated_processor_seconds": simulated.processor_seconds,
            "off": round(simulated.processor_seconds / spent[size] - 1, 3),
            "measured_seconds": runs[size]["seconds"],
            "simulated_seconds": simulated.longest_run_seconds,
        })  # fmt: skip
    texts = [len(record["log"]) for record in data_file(DATA).records]
    day = {
        layout: simulate(measured, Fleet.day(layout)).described()
        for layout in ("objects", "archives")
    }
    return {
        "assumed": ASSUMED,
        "fitted": few,
        "processor_seconds_a_log": round(measured.log_seconds, 6),
        "processor_seconds_to_start": round(measured.start_seconds, 2),
        "checked": checked,
        "log_bytes": {"mean": round(sum(texts) / len(texts)), "p95": percentile(texts, 0.95)},
        "day_of_1e8_logs": day,
    }


STEPS = {
    "workers": _workers,
    "growth": _growth,
    "kills": _local_kills,
    "ray_overhead": _overhead,
    "ray_kills": _ray_kills,
    "one_log": _one_log,
    "model": _model,
}


if __name__ == "__main__":
    main()
