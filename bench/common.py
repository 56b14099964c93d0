"""What all benchmarks share: where the data lies, and how results are kept.

The data are not part of the repository. ``EPOCHZERO_DATA`` names the folder that holds them; when
it is not set, ``../shared/data`` beside the repository is taken.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import epochzero
from epochzero.diagnose import Catalog, Diagnosis

__all__ = [
    "LAB",
    "REPOSITORY",
    "RESULTS",
    "SEED",
    "SKIPPED",
    "DataFile",
    "LabJob",
    "commit",
    "content_digest",
    "data_file",
    "data_path",
    "fold",
    "jsonl",
    "lab_jobs",
    "line_hash",
    "literals",
    "mean",
    "measured_before",
    "measured_paths",
    "percentile",
    "rate",
    "require_all",
    "require_gpus",
    "save",
    "scratch",
    "verdict_of",
]

REPOSITORY = Path(__file__).resolve().parent.parent
LAB = REPOSITORY / "lab"
RESULTS = Path(
    os.environ.get("EPOCHZERO_BENCH_RESULTS") or REPOSITORY / "bench" / "results"
).absolute()
SEED = 20_200_627
"""Of everything that is drawn at random."""
SKIPPED = 77
"""Exit code of a benchmark that lacks what it needs and measures nothing, as in Automake and Meson."""
STAND_IN = "EPOCHZERO_BENCH_STAND_IN"
"""Environment variable that is set where the CPU stands in for a GPU."""


class DataFile:
    """A file of the data, with what a result file says of it.

    Args:
        name: path below the data folder.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.records = list(jsonl(path))

    def described(self) -> Mapping[str, object]:
        """Name, hash and number of records."""
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        return {"name": self.name, "sha256": digest, "records": len(self.records)}


def data_path(name: str) -> Path:
    """Where a file of the data folder is; ends the program with a message when it is not there."""
    told = os.environ.get("EPOCHZERO_DATA")
    folder = Path(told) if told else REPOSITORY.parent / "shared" / "data"
    path = folder / name
    if not path.is_file():
        where = "EPOCHZERO_DATA" if told else "the default for EPOCHZERO_DATA"
        sys.exit(
            f"{name}: not found in {folder} ({where}). Set EPOCHZERO_DATA to the folder that holds "
            "the benchmark data; bench/README.md says which files it needs."
        )
    return path


def data_file(name: str) -> DataFile:
    """The records of a file of the data folder."""
    return DataFile(name, data_path(name))


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file, gzipped or not."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():  # bytes: texts hold line ends of their own
        yield json.loads(line)


def fold(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())


def line_hash(line: str) -> str:
    """Names a line of a log without showing it (``bench/labels/README.md``)."""
    return hashlib.sha256(fold(line).encode()).hexdigest()[:16]


def verdict_of(found: Diagnosis) -> str:
    """The category of a diagnosis, ``not_a_failure`` where it says that nothing failed."""
    return "not_a_failure" if found.outcome == "no_failure" else found.category


@dataclass(frozen=True, slots=True)
class LabJob:
    """A recorded job of the lab, and what must be found in it.

    Attributes:
        name: of its folder.
        folder: where its logs and ``facts.json`` lie.
        expect: the table of that name in its ``job.toml``.
    """

    name: str
    folder: Path
    expect: Mapping[str, Any]

    @property
    def good(self) -> bool:
        return bool(self.expect["outcome"] == "no_failure")


def lab_jobs() -> list[LabJob]:
    """All jobs of the lab that have been recorded."""
    jobs: list[LabJob] = []
    for described in sorted(LAB.glob("jobs/*/job.toml")):
        name = described.parent.name
        folder = LAB / "logs" / name
        if folder.is_dir():
            expect = tomllib.loads(described.read_text(encoding="utf-8"))["expect"]
            jobs.append(LabJob(name, folder, expect))
    return jobs


def literals(catalog: Catalog) -> list[str]:
    """The literal texts that EpochZero's scanner looks for with this catalogue."""
    source = Path(epochzero.__file__).with_name("logs") / "cues.toml"
    cues: dict[str, list[str]] = tomllib.loads(source.read_text(encoding="utf-8"))
    texts = [text for kind, group in cues.items() if kind != "progress" for text in group]
    return list(dict.fromkeys((*texts, *catalog.anchors)))


def scratch() -> Path:
    """A folder outside the repository for large files; kept, so that a second run is quick."""
    folder = Path(tempfile.gettempdir()) / "epochzero-bench"
    folder.mkdir(exist_ok=True)
    return folder


def rate(part: float, whole: float) -> float | None:
    """``part / whole`` to four places; None when there is nothing to divide by."""
    return round(part / whole, 4) if whole else None


def mean(values: Sequence[float]) -> dict[str, object]:
    """Mean over seeds with its interval of 95 % (percentile bootstrap)."""
    draws = random.Random(SEED)
    means = [statistics.fmean(draws.choices(values, k=len(values))) for _ in range(2000)]
    low, high = percentile(means, 0.025), percentile(means, 0.975)
    return {
        "mean": round(statistics.fmean(values), 4),
        "interval": [round(low, 4), round(high, 4)],
    }


def save(
    name: str,
    numbers: Mapping[str, object],
    *,
    data: Iterable[Mapping[str, object]] = (),
    rivals: Mapping[str, str] | None = None,
) -> None:
    """Writes ``bench/results/NAME.json``.

    Args:
        name: of the benchmark.
        numbers: what was measured.
        data: on what (`DataFile.described`, or alike).
        rivals: version or commit of each rival, or "not run".
    """
    RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": SEED,
        "measured": {"paths": (paths := measured_paths(name)), "sha256": content_digest(paths)},
        "machine": _machine(),
        "versions": {**_versions(), **(rivals or {})},
        "data": list(data),
        "numbers": numbers,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"-> {path}")


def require_gpus(count: int = 1) -> None:
    """Ends the program with `SKIPPED` if torch sees fewer GPUs."""
    import torch

    if (found := torch.cuda.device_count()) < count:
        print(f"skipped, because of too few GPUs: {count} needed, {found} found by torch")
        sys.exit(SKIPPED)


def require_all(measured: int, planned: int, what: str) -> None:
    """Ends the program with exit code 1 if something was not measured. The result of the rest is saved before."""
    if measured < planned or not planned:
        sys.exit(f"only {measured} of {planned} {what} were measured")


def measured_before(name: str) -> Mapping[str, Any]:
    """The numbers of ``bench/results/NAME.json``; none if the code that they measure has changed."""
    path = RESULTS / f"{name}.json"
    record = json.loads(path.read_bytes()) if path.exists() else {"measured": {}}
    paths = measured_paths(name)
    same = record["measured"] == {"paths": paths, "sha256": content_digest(paths)}
    numbers: Mapping[str, Any] = record["numbers"] if same else {}
    return numbers


def measured_paths(name: str) -> list[str]:
    """The packages whose code decides a result; none if ``figures.toml`` does not list it.

    That is no error here, since the result of hours would be lost; a test reports it.
    """
    table = tomllib.loads((REPOSITORY / "bench" / "figures.toml").read_text(encoding="utf-8"))
    paths = table["measured"].get(name, "").split()
    return [path if path.startswith("models/") else f"src/epochzero/{path}" for path in paths]


def content_digest(paths: Iterable[str], root: Path = REPOSITORY) -> str:
    """SHA-256 of the content below these paths.

    It tells whether a result still describes the code. A commit cannot: rebasing or squashing
    replaces it, and a source distribution has no history.
    """
    return hashlib.sha256("".join(_digest(root / path) for path in paths).encode()).hexdigest()


@cache
def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        relative = file.relative_to(path.parent)
        if file.is_file() and "__pycache__" not in relative.parts:
            digest.update(relative.as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _machine() -> dict[str, object]:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages * size / 2**30, 1),
        "os": f"{platform.system()} {platform.release()}",
        **_gpu_model(),
    }


def _gpu_model() -> dict[str, str]:
    """GPU and driver; nothing on a machine without one, or that none was used for a measurement of GPUs."""
    if os.environ.get(STAND_IN):
        return {"gpu": "none: stand-in on the CPU"}
    if not shutil.which("nvidia-smi"):
        return {}
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name, _, driver = done.stdout.partition("\n")[0].partition(",")
    return {"gpu": name, "driver": driver.strip()} if done.returncode == 0 and name else {}


def _cpu_model() -> str:
    source = Path("/proc/cpuinfo")
    if source.exists():
        for line in source.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "epochzero": epochzero.__version__,
        "epochzero_commit": commit(),
        "hyperscan": importlib.metadata.version("hyperscan"),
    }


@cache
def commit() -> str:
    """The commit of this repository, marked when files of the package differ from it.

    ``EPOCHZERO_BENCH_COMMIT`` names it for a copy without history.
    """
    if named := os.environ.get("EPOCHZERO_BENCH_COMMIT"):
        return named

    def git(*arguments: str) -> str:
        command = ("git", "-C", str(REPOSITORY), *arguments)
        try:
            return subprocess.run(
                command, capture_output=True, text=True, check=False
            ).stdout.strip()
        except OSError:  # git is not installed.
            return ""

    head = git("rev-parse", "HEAD")
    return (
        head + ("-modified" if git("status", "--porcelain", "src", "models") else "")
    ) or "unknown"


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
