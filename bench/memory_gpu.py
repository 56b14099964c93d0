"""The programs in ``memory/``, really run on the GPU that is there, beside the estimate for it.

The estimates are made meanwhile, without that GPU. Where there is none it says so, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common import save
from memory import errors, estimated, versions
from rivals.memory import torch_preflight

from epochzero.check.target.model import GPU

HERE = Path(__file__).resolve().parent
AT_ONCE = 4
"""Estimates that are made at the same time."""
MEAN_ALLOCATED, MEAN_RESERVED, MOST = 0.015, 0.03, 0.06
"""The errors that are wanted at most."""
CASES: tuple[tuple[str, ...], ...] = (
    ("language.py", "--model=gpt2", "--batch=4", "--length=512"),
    ("language.py", "--model=gpt2", "--batch=8", "--length=1024", "--autocast"),
    ("language.py", "--model=gpt2", "--batch=8", "--length=1024", "--autocast", "--checkpointing"),
    ("language.py", "--model=gpt2", "--batch=8", "--length=512", "--dtype=bf16"),
    ("language.py", "--model=gpt2", "--batch=2", "--length=128", "--optimizer=adamw", "--single"),
    ("language.py", "--model=gpt2", "--batch=4", "--length=512", "--optimizer=sgd"),
    ("language.py", "--model=bert", "--batch=8", "--length=256"),
    ("language.py", "--model=bert", "--batch=32", "--length=512", "--autocast"),
    ("language.py", "--model=distilbert", "--batch=16", "--length=256", "--autocast"),
    ("image.py", "--batch=32"),
    ("image.py", "--batch=64", "--autocast"),
    ("image.py", "--batch=64", "--autocast", "--channels-last"),
    ("image.py", "--batch=16", "--optimizer=sgd"),
    ("image.py", "--batch=16", "--single"),
)
NAMES = {
    "gpt2": "gpt2",
    "bert": "bert-base-uncased",
    "distilbert": "distilbert-base-uncased",
}
"""Of the models, for torch-preflight."""


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="has torch for CUDA, transformers")
    parser.add_argument("--rivals", type=Path, metavar="VENV", help="has torch-preflight")
    options = parser.parse_args()
    gpu = _gpu(options.python)
    if gpu is None:
        print("no GPU here: nothing is measured, and nothing is written")
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        estimates = pool.map(lambda case: estimated(case, gpu, options.python), CASES)
        measured = [_measured(case, options.python) for case in CASES]
        rows = [
            {
                "program": case,
                "measured": real,
                "epochzero": {
                    "allocated": memory.allocated.likely,
                    "reserved": memory.reserved.likely,
                },
                "seconds": round(seconds, 1),
            }
            for case, real, (memory, seconds, _) in zip(CASES, measured, estimates, strict=True)
        ]
    used = versions(options.python, "torch", "transformers")
    rivals: Mapping[str, str] = {"torch-preflight": "not run"}
    if options.rivals:
        answers = torch_preflight(options.rivals, [_described(case, gpu) for case in CASES])
        for row, (allocated, reserved, _) in zip(rows, answers, strict=True):
            row["torch_preflight"] = {"allocated": allocated, "reserved": reserved}
        rivals = versions(str(options.rivals / "bin" / "python"), "torch-preflight")
    found = errors(rows, "epochzero")
    most = max(found["allocated_most"], found["reserved_most"])
    numbers = {
        "gpu": gpu.model,
        "runs": rows,
        "epochzero": found,
        **({"torch_preflight": errors(rows, "torch_preflight")} if options.rivals else {}),
        "reached": {
            "allocated": found["allocated"] <= MEAN_ALLOCATED,
            "reserved": found["reserved"] <= MEAN_RESERVED,
            "most": most <= MOST,
        },
    }
    for row in rows:
        real, said = row["measured"], row["epochzero"]
        texts = [f"{what} {said[what] / real[what] - 1:+.1%}" for what in real]
        print(f"{' '.join(row['program']):80} {', '.join(texts)}")
    print(json.dumps(found), numbers["reached"])
    save("memory_gpu", numbers, rivals={**used, **rivals})


def _gpu(python: str) -> GPU | None:
    program = (
        "import json, torch\n"
        "if torch.cuda.is_available():\n"
        "    found = torch.cuda.get_device_properties(0)\n"
        "    print(json.dumps([found.name, found.total_memory, found.major, found.minor]))"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        return None
    name, size, major, minor = json.loads(done.stdout)
    return GPU(name, size, (major, minor))


def _measured(case: Sequence[str], python: str) -> Mapping[str, int]:
    """The peaks of a program on the GPU, in bytes."""
    command = [python, str(HERE / "memory" / "measure.py"), str(HERE / "memory" / case[0])]
    done = subprocess.run([*command, *case[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(case)}: {done.stderr[-2000:]}")
    peaks: Mapping[str, int] = json.loads(done.stdout.splitlines()[-1])
    return peaks


def _described(case: Sequence[str], gpu: GPU) -> Mapping[str, Any]:
    """A case in the words of torch-preflight."""
    given = dict(word.lstrip("-").partition("=")[::2] for word in case[1:])
    image = case[0] == "image.py"
    half = "autocast" in given or given.get("dtype") == "bf16"
    precision = "pure-bf16" if "dtype" in given else "amp" if half else "fp32"
    optimizer = given.get("optimizer", "adamw")
    return {
        "model": "resnet50" if image else NAMES[given["model"]],
        "gpu_memory": gpu.memory_bytes,
        "config": {
            "batch_size": int(given["batch"]),
            **({"image_size": 224} if image else {"seq_len": int(given["length"])}),
            "precision": precision,
            "optimizer": "sgd-momentum" if image and optimizer == "sgd" else optimizer,
            "gradient_checkpointing": "checkpointing" in given,
            "flash_attention": half and (gpu.capability or (0, 0)) >= (8, 0),
        },
    }


if __name__ == "__main__":
    main()
