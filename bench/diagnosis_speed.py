"""How fast logs are diagnosed on one core, and with how much memory.

Large logs: a synthetic one of 64 ranks, and real ones of MLPerf Training joined into one (when no
clone is given, a second synthetic one with varied text). Three logs that are hard to read: a
repeated traceback, lines that all differ and name an error, and lines of real failures in random
order. Compared with the bare multi-pattern
engine on the same literal texts in the same blocks, with ``cat``, ripgrep, Drain3 and NVRx. Then
many small logs, and how long a command takes to start. Everything is pinned to one core; repeats
are interleaved and the medians are kept, of elapsed and of processor time (on a busy machine the
second is the truer one).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import hyperscan
from common import SEED, data_file, lab_jobs, literals, percentile, rate, save, scratch, verdict_of
from mlperf import MlperfLogs
from rivals import drain
from rivals.nvrx import Nvrx
from rivals.sources import commit
from synthetic import ROOT, ROOT_RANK, synthetic_log, training_lines

from epochzero.diagnose import Catalog, Diagnoser, builtin
from epochzero.logs.source import Log, find_logs

SMALL_LOGS = 5000
SMALL_BYTES = 20_000
SLICE_MEGABYTES = 20
STARTS = 15
HARD_LINES = "failures/unlabelled.jsonl.gz"
HARD_BYTES = {"repeated_traceback": 2_250_000, "all_differ": 100_000_000, "shuffled": 100_000_000}
_HARD_CUE = re.compile(r"Error|NCCL|failed|warning")
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds that something took."""

    elapsed: float
    processor: float


def main() -> None:
    """Measures, prints, and keeps the result."""
    options = _options()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.hard:
        hard = _hard(options.repeats)
        print(hard)
        save("diagnosis_speed_hard", hard, data=[data_file(HARD_LINES).described()])
        return
    megabytes = 50 if options.quick else 500
    memory = _memory((20, 50) if options.quick else (50, 500, 2000))
    catalog = builtin()
    logs = {"synthetic": synthetic_log(megabytes), **_second_log(options.mlperf, megabytes)}
    numbers: dict[str, Any] = {
        "signatures": len(catalog),
        "literals": len(literals(catalog)),
        "repeats": options.repeats,
        "peak_memory": memory,
    }
    for name, path in logs.items():
        numbers[name] = _large(path, catalog, options.repeats)
        _print_large(name, numbers[name])
    numbers["synthetic"] |= _root_found(logs["synthetic"], Diagnoser(catalog))
    numbers["slice"] = _slice(options.nvrx)
    numbers["small_logs"] = _small(Diagnoser(catalog), options.repeats)
    numbers["start_up"] = _start_up()
    for name in ("peak_memory", "slice", "small_logs", "start_up"):
        print(name, numbers[name])
    data = [{"name": name, "bytes": path.stat().st_size} for name, path in logs.items()]
    if options.mlperf:
        data.append(dict(MlperfLogs(options.mlperf).described()))
    if not options.quick:
        save("diagnosis_speed", numbers, data=data, rivals=_versions(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of each measurement (default: 5)")
    parser.add_argument(
        "--hard",
        action="store_true",
        help="only the logs that are hard to read, saved on their own",
    )
    parser.add_argument("--quick", action="store_true", help="50 MB logs, nothing is kept")
    parser.add_argument(
        "--mlperf", type=Path, metavar="DIR", help="clone of mlcommons/training_results_v2.1"
    )
    parser.add_argument(
        "--nvrx", type=Path, metavar="DIR", help="clone of NVIDIA/nvidia-resiliency-ext"
    )
    return parser.parse_args()


def _second_log(mlperf: Path | None, megabytes: int) -> Mapping[str, Path]:
    if mlperf is None:
        return {"synthetic_varied": synthetic_log(megabytes, varied=True)}
    path = scratch() / f"mlperf-{megabytes}mb-{commit(mlperf)[:12]}.log"
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            for log in MlperfLogs(mlperf):
                stream.write(log.text if log.text.endswith(b"\n") else log.text + b"\n")
                if stream.tell() >= megabytes * 1_000_000:
                    break
        part.rename(path)
    return {"mlperf": path}


# Large logs


def _large(path: Path, catalog: Catalog, repeats: int) -> dict[str, Any]:
    """Speeds on one log, and EpochZero's share of the bare engine's."""
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "literals.txt"
        # A literal with a line end cannot be asked of a tool that reads line by line.
        texts = [text.strip("\r\n") for text in literals(catalog)]
        words.write_text("\n".join(dict.fromkeys(texts)), encoding="utf-8")
        taken = _interleaved(_runners(path, catalog, words), repeats)
    size = path.stat().st_size
    speeds = {name: _speed(size, each) for name, each in taken.items()}
    ratios = [
        engine.processor / ours.processor
        for engine, ours in zip(taken["engine"], taken["epochzero"], strict=True)
    ]
    return {
        "bytes": size,
        "speeds": speeds,
        "share_of_engine": round(statistics.median(ratios), 3),
        "engine_matches": _matches(path, _engine(catalog)),
    }


def _runners(path: Path, catalog: Catalog, words: Path) -> Mapping[str, Run]:
    diagnoser = Diagnoser(catalog)
    engine = _engine(catalog)
    log = Log(path.name, path=path)
    runners: dict[str, Run] = {
        "engine": lambda: _scan(log, engine),
        "epochzero": lambda: diagnoser.diagnose([log]),
        "cat": lambda: _quiet("cat", str(path)),
    }
    if shutil.which("rg"):
        rg = ("rg", "--text", "--fixed-strings", "--threads=1", "--count", "--no-config")
        runners["ripgrep"] = lambda: _quiet(*rg, f"--file={words}", str(path))
    return runners


def _engine(catalog: Catalog) -> hyperscan.Database:
    """The engine alone, with all literal texts that EpochZero looks for."""
    texts = [b"".join(b"\\x%02x" % byte for byte in text.encode()) for text in literals(catalog)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=texts, ids=list(range(len(texts))), elements=len(texts))
    return database


def _scan(log: Log, engine: hyperscan.Database) -> None:
    """Every match is reported, to a function that does nothing."""
    for block in log.blocks():
        engine.scan(block.data, match_event_handler=lambda _id, _from, _to, _flags, _context: None)


def _matches(path: Path, engine: hyperscan.Database) -> int:
    found: list[int] = []
    for block in Log(path.name, path=path).blocks():
        engine.scan(block.data, match_event_handler=lambda number, *_: found.append(number))
    return len(found)


def _quiet(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _interleaved(runners: Mapping[str, Run], repeats: int) -> Mapping[str, list[Taken]]:
    """Each runner in turn, ``repeats`` times, after a first turn that is not counted."""
    taken: dict[str, list[Taken]] = {name: [] for name in runners}
    for turn in range(repeats + 1):
        for name, run in runners.items():
            measured = _taken(run)
            if turn:
                taken[name].append(measured)
    return taken


def _taken(run: Run) -> Taken:
    processor, elapsed = _processor(), time.perf_counter()
    run()
    return Taken(time.perf_counter() - elapsed, _processor() - processor)


def _processor() -> float:
    """Processor seconds of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _speed(size: int, taken: Sequence[Taken]) -> Mapping[str, float]:
    """Megabytes (10^6) a second."""
    return {
        "mb_s": round(size / 1e6 / statistics.median(each.elapsed for each in taken), 1),
        "mb_s_processor": round(
            size / 1e6 / statistics.median(each.processor for each in taken), 1
        ),
    }


def _root_found(path: Path, diagnoser: Diagnoser) -> Mapping[str, object]:
    """Whether the speed was not bought with a wrong answer."""
    root = diagnoser.diagnose([Log(path.name, path=path)]).root
    return {
        "root_line_right": root is not None and ROOT in root.text,
        "root_rank_right": root is not None and root.rank == ROOT_RANK,
    }


def _print_large(name: str, numbers: Mapping[str, Any]) -> None:
    print(f"{name}: {numbers['bytes'] / 1e6:.0f} MB, {numbers['engine_matches']} matches")
    for tool, speed in numbers["speeds"].items():
        print(f"    {tool:12}{speed['mb_s']:>9.1f} MB/s {speed['mb_s_processor']:>9.1f} processor")
    print(f"    share of the engine's speed {numbers['share_of_engine']}")


# Logs that are hard to read


def _hard(repeats: int) -> Mapping[str, object]:
    """Speed and peak memory with each; all its time is that of lines that hold a cue."""
    diagnoser = Diagnoser().prepare()
    numbers: dict[str, object] = {}
    for name, path in _hard_logs().items():
        log = Log(path.name, path=path)
        taken = [_taken(lambda log=log: diagnoser.diagnose([log])) for _ in range(repeats)]
        size = path.stat().st_size
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peak = pool.submit(_peak_of, path).result()
        numbers[name] = {
            "bytes": size,
            "seconds_processor": round(statistics.median(each.processor for each in taken), 2),
            **_speed(size, taken),
            "peak_memory": peak,
        }
    return numbers


def _hard_logs() -> Mapping[str, Path]:
    """A repeated traceback, lines that all differ, and real lines of which a fifth holds a cue."""
    draw = random.Random(SEED)
    repeated = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "KeyError: 'lr'\n"
    )
    lines = sorted(
        {line for record in data_file(HARD_LINES).records for line in record["log"].split("\n")}
    )
    cues = [line for line in lines if _HARD_CUE.search(line)]
    others = [line for line in lines if line.strip() and not _HARD_CUE.search(line)]
    texts: dict[str, Callable[[], str]] = {
        "repeated_traceback": lambda: repeated * 1000,
        "all_differ": lambda: "".join(
            f"worker {draw.getrandbits(32):x} step {draw.getrandbits(20)}: Error: request "
            f"{''.join(draw.choices('abcdefghij', k=12))} gave no answer\n"
            for _ in range(5000)
        ),
        "shuffled": lambda: "".join(
            f"{line}\n"
            for line in draw.sample(
                draw.choices(others, k=8000) + draw.choices(cues, k=2000), 10_000
            )
        ),
    }
    found = {}
    for name, text in texts.items():
        found[name] = path = scratch() / f"hard-{name}.log"
        with path.open("wb") as stream:
            while stream.tell() < HARD_BYTES[name]:
                stream.write(text().encode("utf-8", "replace"))
    return found


# A slice, for tools that would need hours for the whole


def _slice(nvrx: Path | None) -> Mapping[str, object]:
    path = synthetic_log(SLICE_MEGABYTES)
    size = path.stat().st_size
    numbers: dict[str, object] = {"bytes": size, "drain3": "not run", "nvrx": "not run"}
    if drain.available():
        numbers["drain3"] = _speed(size, [_taken(lambda: drain.mine(path))])
    if nvrx is not None:
        tool = Nvrx(nvrx, scratch())
        primary: dict[str, Any] = {}
        taken = _taken(lambda: primary.update(tool.primary(path) or {}))
        line = _line(path, primary.get("line"))
        numbers["nvrx"] = {
            **_speed(size, [taken]),
            "root_line_right": ROOT in line,
            "root_rank_right": str(primary.get("rank")) == str(ROOT_RANK),
        }
    return numbers


def _line(path: Path, number: int | None) -> str:
    """A line of a file, counted from 1."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return lines[number - 1] if number else ""


# Many small logs


def _small(diagnoser: Diagnoser, repeats: int) -> Mapping[str, object]:
    """Logs a second with one `Diagnoser`, files read from the page cache."""
    logs, wanted = _small_logs()
    taken: list[Taken] = []
    for _ in range(repeats):
        found: list[str] = []
        taken.append(_taken(partial(_diagnose_all, diagnoser, logs, found)))
    right = sum(said in accepted for said, accepted in zip(found, wanted, strict=True))
    alone = [_taken(partial(diagnoser.diagnose, [log])).elapsed for log in logs[:1000]]
    return {
        "logs": len(logs),
        "bytes": sum(log.path.stat().st_size for log in logs if log.path),
        "logs_s": round(len(logs) / statistics.median(each.elapsed for each in taken)),
        "logs_s_processor": round(len(logs) / statistics.median(each.processor for each in taken)),
        "milliseconds_median": round(1000 * statistics.median(alone), 3),
        "milliseconds_99": round(1000 * percentile(alone, 0.99), 3),
        "category_right": rate(right, len(logs)),
    }


def _diagnose_all(diagnoser: Diagnoser, logs: Sequence[Log], found: list[str]) -> None:
    """Appends the category of each log to ``found``."""
    for log in logs:
        found.append(verdict_of(diagnoser.diagnose([log])))


def _small_logs() -> tuple[list[Log], list[tuple[str, ...]]]:
    """The lab's failures behind training lines, with the categories that each allows."""
    draw = random.Random(SEED)
    sources = [
        (path.read_bytes(), (job.expect["category"], *job.expect.get("also", ())))
        for job in lab_jobs()
        if job.expect["outcome"] == "failed" and len(find_logs([job.folder])) == 1
        for path in (job.folder / "stdout.log",)
        if path.stat().st_size < SMALL_BYTES
    ]
    folder = scratch() / "small"
    folder.mkdir(exist_ok=True)
    logs: list[Log] = []
    wanted: list[tuple[str, ...]] = []
    for number in range(SMALL_LOGS):
        text, categories = draw.choice(sources)
        path = folder / f"{number:04d}.log"
        path.write_bytes(training_lines(draw, SMALL_BYTES - len(text)).encode() + text)
        logs.append(Log(path.name, path=path))
        wanted.append(categories)
    return logs, wanted


# Memory and start-up


def _memory(sizes: Sequence[int]) -> Mapping[str, object]:
    """Peak resident memory of a fresh process that diagnoses one log, in mebibytes."""
    peaks: dict[str, object] = {}
    for megabytes in sizes:
        path = synthetic_log(megabytes)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peaks[f"{megabytes}_mb"] = pool.submit(_peak_of, path).result()
    return peaks


def _peak_of(path: Path) -> float:
    Diagnoser().diagnose([Log(path.name, path=path)])
    # Not getrusage: its peak includes the parent's, from before the child's program was loaded.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return round(int(peak.split()[1]) / 1024, 1)


def _start_up() -> Mapping[str, object]:
    """Milliseconds that a command takes from start to end; the median."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.log"
        small.write_text(
            "step 1 loss 2.0\nTraceback (most recent call last):\n"
            '  File "train.py", line 3, in <module>\n'
            "KeyError: 'lr'\n",
            encoding="utf-8",
        )
        program = Path(sys.executable).with_name("epochzero")
        command = (str(program),) if program.exists() else (sys.executable, "-m", "epochzero")
        commands = {"help": ("--help",), "diagnose_small": ("diagnose", str(small))}
        runs: dict[str, Run] = {
            name: partial(_quiet, *command, *arguments) for name, arguments in commands.items()
        }
        runs["python_alone"] = lambda: _quiet(sys.executable, "-c", "pass")
        taken = _interleaved(runs, STARTS)
    return {
        name: {
            "ms": round(1000 * statistics.median(t.elapsed for t in each), 1),
            "ms_processor": round(1000 * statistics.median(t.processor for t in each), 1),
        }
        for name, each in taken.items()
    }


def _versions(options: argparse.Namespace) -> Mapping[str, str]:
    ripgrep = "not run"
    if shutil.which("rg"):
        told = subprocess.run(("rg", "--version"), capture_output=True, text=True, check=True)
        ripgrep = told.stdout.split("\n", 1)[0]
    return {
        "ripgrep": ripgrep,
        "drain3": drain.version(),
        "nvrx": commit(options.nvrx) if options.nvrx else "not run",
    }


if __name__ == "__main__":
    main()
