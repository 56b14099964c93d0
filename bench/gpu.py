"""What only a GPU can show, in one call of a few minutes, part by part.

    python bench/gpu.py --out DIR [--parts memory,failures] [--stand-in]

Each part is a process of its own with a time limit and a result file, so that a run that is cut off counts for what it
finished. ``DIR/gpu.tar.gz`` is rewritten after each part; it has the result files, the recorded logs of
``lab/gpu`` and the output of each part. ``--stand-in`` runs the same without a GPU: on the CPU, and for memory on
the simulated GPU, with longer limits. What it writes proves that the parts work, and nothing about a GPU; each
result file says so, and ``gpu_stand_in.json`` lists how each part ended.

The exit code is 0 only if all parts, or those of ``--parts``, measured all that they planned; 77 if others were skipped because
something is missing, such as a second GPU; and 1 if a part measured only some of its cases or nothing, reached its time limit, or
did not start. ``results/parts.json`` says it of each part.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# The Python that has torch need not have EpochZero.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
from common import SKIPPED, STAND_IN, measured_before, save

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SLOWER = 20
"""So much longer is each limit without a GPU."""
MEASURED = "measured"
_ENDS = {0: MEASURED, SKIPPED: "skipped"}
"""Of a part, by exit code."""


@dataclass(frozen=True, slots=True)
class Part:
    """A measurement.

    Attributes:
        name: of the part.
        command: script in ``bench/`` and its arguments.
        seconds: time limit.
        stand_in: whether it takes ``--stand-in`` where there is no GPU.
        device: whether it takes ``--device``.
        timed: whether it measures time or the memory of the whole GPU, so that nothing else may run.
        small: arguments for the stand-in, whose numbers say nothing.
    """

    name: str
    command: tuple[str, ...]
    seconds: int
    stand_in: bool = False
    device: bool = False
    timed: bool = True
    small: tuple[str, ...] = ()


PARTS = (
    # What has not been measured on a GPU comes first, since the time for all may end before the last.
    Part("memory", ("memory_gpu.py",), 170, stand_in=True, timed=False, small=("--only", "image.py")),
    Part("failures", ("gpu/failures.py", "--which", "together"), 130, stand_in=True, timed=False),
    Part("replay", ("gpu/replays.py",), 130, device=True, timed=False),
    Part("samples", ("gpu/samples.py",), 60, stand_in=True),
    Part("full", ("gpu/failures.py", "--which", "alone"), 130, stand_in=True),
    Part("capture", ("capture_overhead.py", "--steps", "40", "--models", "resnet18", "gpt2"), 90, device=True, small=("--steps", "1", "--models", "resnet18")),
    Part("watch", ("watch_overhead.py", "--steps", "24", "--models", "resnet18", "gpt2"), 90, device=True, small=("--steps", "1")),
    Part("fit", ("survive.py",), 80, device=True, small=("--steps", "2", "--size", "8")),
    Part("hang", ("gpu/nccl_hang.py",), 60, stand_in=True),
)  # fmt: skip


def main() -> None:
    """Runs the parts one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(part.name for part in PARTS))
    parser.add_argument("--stand-in", action="store_true", help="without a GPU")
    parser.add_argument(
        "--seconds", type=float, default=600, help="for all parts together, with a GPU"
    )
    parser.add_argument("--estimates", type=Path, help="of memory_gpu.py --estimate")
    here = Path(sys.prefix) if find_spec("torch_preflight") else None
    parser.add_argument("--rivals", type=Path, default=here, help="environment with torch-preflight; default: this one, if it has it")  # fmt: skip
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out.resolve()
    work = out.parent / f"{out.name}-work"
    for folder in ("results", "output", "lab"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    if options.stand_in:
        os.environ |= {STAND_IN: "1", "CUDA_VISIBLE_DEVICES": ""}
    slower = SLOWER if options.stand_in else 1
    end = time.monotonic() + options.seconds * slower
    # So that a run without a GPU can be made part by part.
    before: dict[str, str] = {**measured_before("gpu_stand_in").get("parts", {})}
    wanted = options.parts.split(",")
    if unknown := set(wanted) - {part.name for part in PARTS}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    ended = dict.fromkeys(wanted, "not started")
    together = [part for part in PARTS if part.name in wanted and not part.timed]
    groups = [together, *([part] for part in PARTS if part.name in wanted and part.timed)]
    for group in filter(None, groups):
        left = end - time.monotonic()
        if left < 10:
            break
        with ThreadPoolExecutor(len(group)) as pool:
            runs = {
                part.name: pool.submit(
                    _run, part, _command(part, options), min(slower * part.seconds, left), work
                )
                for part in group
            }
        ended |= {name: run.result() for name, run in runs.items()}
        (work / "results" / "parts.json").write_text(json.dumps(ended, indent=1) + "\n")
        _pack(work, out)
        if options.stand_in:
            parts = {**before, **ended}
            good = list(parts.values()).count(MEASURED)
            save("gpu_stand_in", {"parts": parts, "of": len(PARTS), "measured": good})
    print("\n".join(f"{name}: {end}" for name, end in ended.items()))
    sys.exit(_exit_code(ended.values()))


def _exit_code(ends: Iterable[str]) -> int:
    if rest := set(ends) - {MEASURED}:
        return SKIPPED if rest == {_ENDS[SKIPPED]} else 1
    return 0


def _command(part: Part, options: argparse.Namespace) -> list[str]:
    script, *arguments = part.command
    command = [sys.executable, str(HERE / script), *arguments]
    if part.device:
        command += ["--device", "cpu" if options.stand_in else "cuda"]
    if options.stand_in:
        command += [*part.small, *(["--stand-in"] if part.stand_in else [])]
    if part.name == "memory":
        for option in ("estimates", "rivals"):
            if path := getattr(options, option):
                command += [f"--{option}", str(path.resolve())]
    return command


def _run(part: Part, command: Sequence[str], limit: float, work: Path) -> str:
    """How it ended."""
    environment = {
        **os.environ,
        "EPOCHZERO_BENCH_RESULTS": str(work / "results"),
        "EPOCHZERO_BENCH_LAB": str(work / "lab"),
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(REPOSITORY / "src"), os.environ.get("PYTHONPATH")))
        ),
        "PYTHONUNBUFFERED": "1",
    }
    began = time.monotonic()
    output = work / "output" / f"{part.name}.txt"
    with (
        output.open("wb") as stream,
        subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=work,
            start_new_session=True,
        ) as process,
    ):
        try:
            code = process.wait(limit)
            end = _ENDS.get(code, f"failed with exit code {code}")
        except subprocess.TimeoutExpired:
            # Jobs have sessions of their own; one that fills the GPU would spoil the next part.
            for each in (process.pid, *_descendants(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            end = "time limit"
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    title = f"=== {part.name}: {end}, {time.monotonic() - began:.0f} s"
    print("\n".join([title, *(line[:200] for line in lines[-8:])]), flush=True)
    return end


def _descendants(process: int) -> list[int]:
    """Processes that this one started, and those that these started."""
    pairs = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pairs.append(
                (int(stat.read_text().rpartition(")")[2].split()[1]), int(stat.parent.name))
            )
    found = [process]
    for parent in found:
        found += [child for above, child in pairs if above == parent]
    return found[1:]


def _pack(work: Path, out: Path) -> None:
    packed = out / "gpu.tar.gz.part"
    with tarfile.open(packed, "w:gz") as archive:
        for folder in ("results", "output", "lab"):
            archive.add(work / folder, folder, filter=_without_links)
    shutil.move(packed, out / "gpu.tar.gz")


def _without_links(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.issym() else member


if __name__ == "__main__":
    main()
