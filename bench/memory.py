"""The memory of training programs, estimated without a GPU, beside what was measured on one.

The programs in ``memory/`` run on a pretended T4; the traces of what they allocate are replayed in the
model of torch's allocator. The measurements are eight runs of the calibration of torch-preflight
(``tests/calibration/measured_peaks.json``). Nothing is fitted to them: what the model knows comes from
torch's source, and the programs do what the measuring program does, before it measures too
(``memory/warm.py``; ``cold`` in the result is without that). Then time and memory of the estimate itself, for
larger models.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import data_path, save
from rivals.memory import FORMULAS, torch_preflight

from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.resize import fused
from epochzero.check.dryrun.memory.trace import read
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU

HERE = Path(__file__).resolve().parent
__all__ = ["errors", "estimated", "versions"]

MEASURED = "gpu_memory/t4_measured_peaks.json"
ALLOCATED, RESERVED = 0.015, 0.03
"""The mean errors that are wanted at most."""
PROTOTYPE = {"allocated": 0.011, "reserved": 0.026}
"""Mean errors of the first trial, on the same runs."""
LARGE = {
    "gpt2": ("--model=gpt2", "--batch=8", "--length=1024", "--autocast"),
    "llama_7b": ("--model=llama", "--batch=1", "--length=2048", "--dtype=bf16"),
}
LIMITS = {"gpt2": 12.0, "llama_7b": 20.0}
"""Seconds that are wanted at most; and of memory 1 GiB for the first."""


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="has torch and transformers")
    parser.add_argument("--rivals", type=Path, metavar="VENV", help="has torch-preflight")
    options = parser.parse_args()
    path = data_path(MEASURED)
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    rows = [_row(run, options.python) for run in runs]
    numbers: dict[str, Any] = {
        "runs": rows,
        "epochzero": errors(rows, "epochzero"),
        "cold": errors(rows, "cold"),
    }
    for name, formula in FORMULAS.items():
        for run, row in zip(runs, rows, strict=True):
            row[name] = dict.fromkeys(("allocated", "reserved"), formula(run["params"]))
        numbers[name] = errors(rows, name)
    if options.rivals:
        answers = torch_preflight(str(options.rivals / "bin" / "python"), runs)
        for row, (allocated, reserved, _) in zip(rows, answers, strict=True):
            row["torch_preflight"] = {"allocated": allocated, "reserved": reserved}
        numbers["torch_preflight"] = errors(rows, "torch_preflight")
    numbers["prototype"] = PROTOTYPE
    numbers["time"] = {name: _timed(given, options.python) for name, given in LARGE.items()}
    numbers["reached"] = _reached(numbers)
    _print(numbers)
    data = [{"name": MEASURED, "records": len(runs)}]
    used = versions(options.python, "torch", "transformers")
    rivals = {"torch-preflight": "not run"}
    if options.rivals:
        rivals = versions(str(options.rivals / "bin" / "python"), "torch-preflight")
    save("memory", numbers, data=data, rivals={**used, **rivals})


def _row(run: Mapping[str, Any], python: str) -> dict[str, Any]:
    """A measured run, and what is estimated for it."""
    given, model = run["config"], run["model"].split("-")[0]
    common = ("--autocast", f"--batch={given['batch_size']}")
    if model == "resnet50":
        program = ("image.py", f"--size={given['image_size']}", *common)
    else:
        program = ("language.py", f"--model={model}", f"--length={given['seq_len']}", *common)
    found, seconds, _ = estimated((*program, "--warm"), presets()["T4"], python)
    cold, _, _ = estimated(program, presets()["T4"], python)
    return {
        "model": run["model"],
        "config": given,
        "measured": {
            "allocated": run["measured_allocated_bytes"],
            "reserved": run["measured_reserved_bytes"],
        },
        "epochzero": {"allocated": found.allocated.likely, "reserved": found.reserved.likely},
        "cold": {"allocated": cold.allocated.likely, "reserved": cold.reserved.likely},
        "seconds": round(seconds, 1),
    }


def estimated(program: Sequence[str], gpu: GPU, python: str) -> tuple[Memory, float, float]:
    """The estimate for a program; seconds and MiB that it took, the start of Python included."""
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        trace = Path(folder) / "trace"
        described = {
            "model": gpu.model,
            "memory_bytes": gpu.memory_bytes,
            "capability": gpu.capability,
        }
        spec = {"gpu": described, "processes": 1, "trace": str(trace)}
        script = HERE / "memory" / program[0]
        command = [python, str(HERE / "memory" / "trace.py"), json.dumps(spec), str(script)]
        began = time.perf_counter()
        # On a machine with a GPU it is not used.
        done = subprocess.run(
            [*command, *program[1:]],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(program)}: {done.stderr[-2000:]}")
        traced = read(trace)
        found = estimate(fused(traced) if traced.compiled else traced, gpu)
        seconds = time.perf_counter() - began
        return found, seconds, float(done.stdout)


def _timed(given: Sequence[str], python: str) -> Mapping[str, object]:
    found, seconds, megabytes = estimated(("language.py", *given), presets()["A100 80GB"], python)
    return {
        "seconds": round(seconds, 1),
        "process_mib": round(megabytes),
        "allocated": found.allocated.likely,
        "reserved": found.reserved.likely,
        "moment": found.moment,
        "by_kind": dict(found.by_kind),
    }


def errors(rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, float]:
    """Mean and largest error, relative to what was measured."""
    errors: dict[str, float] = {}
    for what in ("allocated", "reserved"):
        each = [abs(row[name][what] / row["measured"][what] - 1) for row in rows]
        errors[what] = round(sum(each) / len(each), 4)
        errors[f"{what}_most"] = round(max(each), 4)
    return errors


def _reached(numbers: Mapping[str, Any]) -> Mapping[str, bool]:
    ours, taken = numbers["epochzero"], numbers["time"]
    return {
        "allocated": ours["allocated"] <= ALLOCATED,
        "reserved": ours["reserved"] <= RESERVED,
        **{f"seconds_{name}": taken[name]["seconds"] <= most for name, most in LIMITS.items()},
        "memory_gpt2": taken["gpt2"]["process_mib"] <= 1024,
    }


def versions(python: str, *names: str) -> dict[str, str]:
    """Of the distributions that an interpreter has."""
    program = (
        "import importlib.metadata as m, json, sys;"
        "print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))"
    )
    command = [python, "-c", program, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def _print(numbers: Mapping[str, Any]) -> None:
    for row in numbers["runs"]:
        texts = []
        for what in ("allocated", "reserved"):
            real, said = row["measured"][what], row["epochzero"][what]
            texts.append(f"{what} {said >> 20:5} of {real >> 20:5} MiB {said / real - 1:+6.1%}")
        print(f"{row['model']:24} batch {row['config']['batch_size']:2} | {' | '.join(texts)}")
    for name in ("epochzero", "cold", "torch_preflight", *FORMULAS, "prototype"):
        if name in numbers:
            found = numbers[name]
            print(f"{name:24} mean error {found['allocated']:6.1%} {found['reserved']:6.1%}")
    for name, taken in numbers["time"].items():
        print(f"{name:24} {taken['seconds']} s, {taken['process_mib']} MiB")
    print(", ".join(f"{name} {'yes' if yes else 'NO'}" for name, yes in numbers["reached"].items()))


if __name__ == "__main__":
    main()
