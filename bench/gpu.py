"""What only a GPU can show, in one call of a few minutes, part by part.

    make gpu [GPU_OUT=DIR] [GPU_PYTHON=...] [GPU_OPTIONS="--parts memory,failures"]
    python bench/gpu.py --out DIR [--parts memory,failures] [--stand-in]

``make gpu`` first finds or installs a torch that sees a GPU (``gpu/install.py``). Each part is a process of its own with a time
limit and result files, so a run that is cut off still has the results of the parts that finished. ``DIR/gpu.tar.gz`` is
rewritten after each part. It contains the result files, the recorded logs of ``lab/gpu`` and the output of each part.
``--stand-in`` runs the same parts without a GPU and with longer limits: on the CPU, and for memory on the simulated GPU. Its
results prove only that the parts work, nothing about a GPU; each result file states this.

``results/parts.json`` and the last lines of the output report how each part ended (measured, skipped, failed, cut off or not
started) and why. The exit code is 0 only if all parts, or those of ``--parts``, measured everything. It is 77 if the other parts
were skipped because something is missing, such as a second GPU, and 1 otherwise. No process of a part outlives it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

# The Python that has torch need not have EpochZero.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
from common import SKIPPED, STAND_IN

from epochzero.platform import adopt_orphans
from epochzero.run.process.tree import descendants, end_descendants, send

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SLOWER = 20
"""So much longer is each limit without a GPU."""
MEASURED, RUNNING = "measured", "running"
_ENDS = {0: MEASURED, SKIPPED: "skipped"}
"""Of a part, by exit code."""
_CHANGING = (
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE",
)  # fmt: skip
"""Environment variables that would change the measurements."""


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
        needs: modules, in addition to torch, without which the part measures nothing.
    """

    name: str
    command: tuple[str, ...]
    seconds: int
    stand_in: bool = False
    device: bool = False
    timed: bool = True
    small: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


PARTS = (
    # What has not been measured on a GPU comes first, since the time for all may end before the last.
    Part("memory", ("memory_gpu.py",), 230, stand_in=True, timed=False, needs=("transformers",)),
    Part("failures", ("gpu/failures.py", "--which", "together"), 130, stand_in=True, timed=False),
    Part("replay", ("gpu/replays.py",), 130, device=True, timed=False),
    Part("samples", ("gpu/samples.py",), 60, stand_in=True),
    Part("full", ("gpu/failures.py", "--which", "alone"), 130, stand_in=True),
    Part("capture", ("capture_overhead.py", "--steps", "40", "--models", "resnet18", "gpt2"), 90, device=True, small=("--steps", "1", "--models", "resnet18")),
    Part("watch", ("watch_overhead.py", "--steps", "24", "--models", "resnet18", "gpt2"), 90, device=True, small=("--steps", "1")),
    Part("fit", ("survive.py",), 80, device=True, small=("--steps", "2", "--size", "8"), needs=("accelerate",)),
    Part("hang", ("gpu/nccl_hang.py",), 60, stand_in=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class End:
    """How a part ended, why, and how long it took; the processor time includes only child processes that were waited for."""

    end: str = "not started"
    why: str = "the time for all parts was over"
    seconds: float = 0.0
    processor_seconds: float = 0.0


class Started:
    """A running part."""

    def __init__(self, part: Part, command: Sequence[str], limit: float, work: Path) -> None:
        self.part, self._limit = part, limit
        self._began = time.monotonic()
        self._output = work / "output" / f"{part.name}.txt"
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _CHANGING},
            "EPOCHZERO_BENCH_RESULTS": str(work / "results"),
            "EPOCHZERO_BENCH_LAB": str(work / "lab"),
            "HF_HUB_OFFLINE": "1",  # No part downloads anything; without a network, requests take minutes.
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(REPOSITORY / "src"), os.environ.get("PYTHONPATH")))
            ),
            "PYTHONUNBUFFERED": "1",
        }
        if not part.timed:
            # A dozen processes run at a time, and each would start as many threads as there are cores.
            environment.setdefault("OMP_NUM_THREADS", "2")
        with self._output.open("wb") as stream:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, env=environment, cwd=work,
                start_new_session=True,
            )  # fmt: skip

    def ended(self) -> End | None:
        """Return how it ended; None while it runs within its limit."""
        taken = time.monotonic() - self._began
        if late := taken > self._limit:
            # Jobs run in their own sessions. A job that still fills the GPU would disturb the next part.
            send(signal.SIGKILL, [self._process.pid, *descendants(self._process.pid)])
        pid, status, used = os.wait4(self._process.pid, 0 if late else os.WNOHANG)
        if not pid:
            return None
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
        end, why = _ENDS.get(code, "failed"), "" if code == 0 else lines[-1][:300]
        if end == "failed":
            why = f"exit code {code}: {why}"
        if late:
            end, why = "cut off", f"it reached its limit of {self._limit:.0f} s"
        print("\n".join([f"=== {self.part.name}", *(line[:200] for line in lines[-8:])]), flush=True)  # fmt: skip
        return End(end, why, round(taken, 1), round(used.ru_utime + used.ru_stime, 1))


def main() -> None:
    """Runs the parts, those that measure time one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(part.name for part in PARTS))
    parser.add_argument("--stand-in", action="store_true", help="without a GPU")
    parser.add_argument(
        "--seconds", type=float, default=600, help="for all parts together, with a GPU"
    )
    parser.add_argument("--estimates", type=Path, help="of memory_gpu.py --estimate")
    options = parser.parse_args()
    wanted = options.parts.split(",")
    if unknown := set(wanted) - {part.name for part in PARTS}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out.resolve()
    work = out.parent / f"{out.name}-work"
    for folder in ("results", "output", "lab"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    if options.stand_in:
        os.environ |= {STAND_IN: "1", "CUDA_VISIBLE_DEVICES": ""}
    _prepare_process()
    for text in _lacking():
        print(text, flush=True)
    ends = dict.fromkeys(wanted, End())

    def note(name: str, end: End) -> None:
        ends[name] = end
        listed = {name: asdict(end) for name, end in ends.items()}
        (work / "results" / "parts.json").write_text(json.dumps(listed, indent=1) + "\n")
        # A running part may be replacing a file; the next archive contains it.
        with suppress(OSError):
            _pack(work, out)

    try:
        _run([part for part in PARTS if part.name in wanted], options, work, note)
    except KeyboardInterrupt:
        for name in (name for name, end in ends.items() if end.end in (RUNNING, End().end)):
            end = "cut off" if ends[name].end == RUNNING else End().end
            note(name, End(end, "the measurement was interrupted"))
    for name, end in ends.items():
        print(f"{name:9} {end.end:11} {end.seconds:5.0f} s, processor {end.processor_seconds:5.0f} s  {end.why}")  # fmt: skip
    sys.exit(_exit_code(end.end for end in ends.values()))


def _prepare_process() -> None:
    """Adopt orphaned processes, disable core files, which would be as large as GPU memory, and end the parts on each signal that ends this program."""
    adopt_orphans()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def _lacking() -> Iterable[str]:
    """Yield what this machine lacks, if cases of a part will fail because of it."""
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        yield "No C compiler was found: compiled programs and Triton's kernels will fail."
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        yield "Python.h was not found: compiled programs and Triton's kernels will fail."
    if not shutil.which("nvidia-smi"):
        yield "nvidia-smi was not found: samples are compared with nothing."


def _run(
    parts: Sequence[Part],
    options: argparse.Namespace,
    work: Path,
    note: Callable[[str, End], None],
) -> None:
    slower = SLOWER if options.stand_in else 1
    end = time.monotonic() + options.seconds * slower
    together = [part for part in parts if not part.timed]
    for group in filter(None, (together, *([part] for part in parts if part.timed))):
        left = end - time.monotonic()
        if left < 10:
            break
        running: list[Started] = []
        try:
            for part in group:
                if absent := [name for name in part.needs if not find_spec(name)]:
                    note(part.name, End("skipped", f"not installed: {', '.join(absent)}"))
                    continue
                limit = min(slower * part.seconds, left)
                running.append(Started(part, _command(part, options), limit, work))
                note(part.name, End(RUNNING, ""))
            while running:
                for each in [*running]:
                    if ended := each.ended():
                        running.remove(each)
                        note(each.part.name, ended)
                time.sleep(0.1)
        finally:
            # Processes that a part left behind are children of this process by now.
            left_over = end_descendants(os.getpid(), since=0, grace=2 * bool(running), patience=10)
            if left_over:
                print(f"still running: {left_over}", flush=True)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


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
    if part.name == "memory" and options.estimates:
        command += ["--estimates", str(options.estimates.resolve())]
    return command


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
