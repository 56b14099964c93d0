"""Runs a script on the GPU, and prints the peaks of its memory in bytes: ``measure.py SCRIPT ARGS``."""

import json
import runpy
import sys
from pathlib import Path

import torch


def main() -> None:
    """Run it."""
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    torch.cuda.synchronize()
    peaks = {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }
    print(json.dumps(peaks))


if __name__ == "__main__":
    main()
