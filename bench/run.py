"""Runs all benchmarks with what is available, each in a process of its own.

Rivals and public logs whose folders are not given are left out, and the result files say so. A
benchmark whose data are not there says which are missing; the others run nevertheless.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from common import SKIPPED

BENCHMARKS = {
    "diagnosis_accuracy": ("openpai", "nvrx"),
    "diagnosis_coverage": ("openpai", "nvrx"),
    "diagnosis_lab": ("openpai", "nvrx"),
    "raw_logs": ("openpai", "nvrx"),
    "diagnosis_false_alarms": ("openpai", "nvrx", "mlperf"),
    "diagnosis_speed": ("nvrx", "mlperf"),
    "localization": ("repos",),
    "localization_ablation": ("repos",),
    "localization_functions": ("repos",),
    "localization_fidelity": ("repos",),
    "localization_bugl": ("repos",),
    "study_import": ("repos",),
    "dnnloc": ("repos",),
    "bjxnet": ("repos",),
    "bug_kind": (),
    "check_lab": ("rivals",),
    "check_dry": ("rivals", "python"),
    "check_speed": ("rivals",),
    "memory": ("rivals",),
    "memory_gpu": ("rivals",),
    "models_coverage": ("evaldnn",),
    "models_dissect": (),
    "models_fairness": (),
    "models_generate": (),
    "models_leaves": (),
    "scale": (),
    "serve_pages": (),
    "store": (),
    "serve_flood": (),
    "serve_ingest": (),
    "serve_kill": (),
    "survive": (),
    "replay": (),
    "start": (),
    "run_overhead": (),
    "run_after": (),
    "run_kill": (),
    "retry_policies": ("openpai",),
    "study_failures": (),
    "simulate": ("python",),
    "study_simulate": (),
    "study_localization": ("repos",),
}
"""Each with the folders it can use."""
FOLDERS = {
    "openpai": "clone of microsoft/pai",
    "nvrx": "clone of NVIDIA/nvidia-resiliency-ext",
    "mlperf": "clone of mlcommons/training_results_v2.1",
    "rivals": "virtual environment with the static analysers",
    "python": "virtual environment in which the lab's jobs run dry, with the libraries they use",
    "repos": "folder of clones of Denchmark's projects, named owner+name",
    "evaldnn": "EvalDNN 0.13, unpacked from the package index",
}
NEEDED = ("repos", "evaldnn")
"""Without which a benchmark that uses them is left out."""


def main() -> None:
    """Runs them one after the other; exit status 1 when one of them did not end well."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, what in FOLDERS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help=what)
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="may be repeated")
    options = parser.parse_args()
    failed = [name for name in options.only or BENCHMARKS if not _ran(name, options)]
    if failed:
        sys.exit(f"did not end well: {', '.join(failed)}")


def _ran(name: str, options: argparse.Namespace) -> bool:
    """Whether the benchmark ended well, or had nothing to run on."""
    print(f"== {name}", flush=True)
    for folder in NEEDED:
        if folder in BENCHMARKS[name] and getattr(options, folder) is None:
            print(f"left out: --{folder} is not given")
            return True
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py"))]
    for folder in BENCHMARKS[name]:
        if given := getattr(options, folder):
            command += [f"--{folder}", str(given)]
    return subprocess.run(command, check=False).returncode in (0, SKIPPED)


if __name__ == "__main__":
    main()
