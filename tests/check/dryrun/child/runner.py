"""Runs the programs of `programs` with two pretended GPUs, each in a fork of a process that has torch.

Standard output: one JSON line a program, with its name, how it ended and the end of what it said.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
CHILD = "epochzero.check.dryrun.child"
GPU = {"model": "NVIDIA A100", "memory_bytes": 80 << 30, "capability": [8, 0]}


def bare_packages(source: Path) -> None:
    """The packages above the child's, without what they import."""
    name = ""
    for part in CHILD.split("."):
        name = f"{name}.{part}" if name else part
        package = ModuleType(name)
        package.__path__ = [str(source / name.replace(".", "/"))]
        sys.modules[name] = package


def run(program: str) -> None:
    """Run one program in this process."""
    fake = importlib.import_module(CHILD + ".fake")
    layers = importlib.import_module(CHILD + ".layers")
    size = 4 if "dist." in program else 1
    world = {"size": size, "rank": 0, "local_size": size}
    with layers.watched(), fake.enter([GPU] * 2, world) as faked:
        names: dict[str, Any] = {"__name__": "__main__", "faked": faked}
        exec(compile(program, "program.py", "exec"), names)


def forked(program: str) -> tuple[int, str]:
    """Status of the process and the end of its output."""
    output, into = os.pipe()
    process = os.fork()
    if not process:
        os.dup2(into, 1)
        os.dup2(into, 2)
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                run(program)
            print("ended", flush=True)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(0)
    os.close(into)
    with os.fdopen(output, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return os.waitpid(process, 0)[1], text[-4000:]


if __name__ == "__main__":
    bare_packages(HERE.parents[3] / "src")
    sys.path.insert(0, str(HERE))
    import programs

    importlib.import_module(CHILD + ".fake")
    # What each program would load for itself.
    for name in ("torch._dynamo", "torch.utils.data", "torch.utils.checkpoint", "numpy"):
        importlib.import_module(name)
    every = {**programs.RUN, **{name: program for name, (program, _) in programs.FAIL.items()}}
    for name, program in every.items():
        status, text = forked(programs.START + program)
        print(json.dumps({"name": name, "status": status, "text": text}), flush=True)
