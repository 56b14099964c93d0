"""The programs in ``memory/``, really run on the GPU that is there, beside the estimate for it.

Where there is no GPU it says so, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import save
from memory import errors, estimated, versions

from epochzero.check.target.model import GPU

HERE = Path(__file__).resolve().parent
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


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="has torch for CUDA, transformers")
    options = parser.parse_args()
    gpu = _gpu(options.python)
    if gpu is None:
        print("no GPU here: nothing is measured, and nothing is written")
        return
    rows = [_row(case, gpu, options.python) for case in CASES]
    found = errors(rows, "epochzero")
    most = max(found["allocated_most"], found["reserved_most"])
    numbers = {
        "gpu": gpu.model,
        "runs": rows,
        "epochzero": found,
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
    save("memory_gpu", numbers, rivals=versions(options.python, "torch", "transformers"))


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


def _row(case: Sequence[str], gpu: GPU, python: str) -> Mapping[str, Any]:
    """A program, as it ran on the GPU and as it is estimated."""
    command = [python, str(HERE / "memory" / "measure.py"), str(HERE / "memory" / case[0])]
    done = subprocess.run([*command, *case[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(case)}: {done.stderr[-2000:]}")
    memory, seconds, _ = estimated(case, gpu, python)
    return {
        "program": case,
        "measured": json.loads(done.stdout.splitlines()[-1]),
        "epochzero": {"allocated": memory.allocated.likely, "reserved": memory.reserved.likely},
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
