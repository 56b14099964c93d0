"""What a process is doing: the stacks of its threads, by py-spy where it is installed and permitted.

Else what the kernel tells: where the process waits, and its state. Source: py-spy's documentation
(``py-spy dump``); proc(5): stack, wchan, status.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from epochzero.run.usage import is_python

__all__ = ["find_py_spy", "stacks_of"]

_SECONDS = 10.0
_MOST = 1 << 20


def find_py_spy(environment: Mapping[str, str]) -> str | None:
    """The program, on the job's path or beside the Python that runs this; None where it is not."""
    beside = os.path.dirname(sys.executable)
    return shutil.which("py-spy", path=f"{environment.get('PATH', os.defpath)}{os.pathsep}{beside}")


def stacks_of(pid: int, py_spy: str | None) -> str:
    """The stacks of a process; empty where nothing can be told. It is stopped for milliseconds."""
    if py_spy is not None and is_python(pid):
        # Frames of C say in which call of NCCL or CUDA it waits, but cannot be had everywhere.
        for options in (["--native"], []):
            if text := _dump([py_spy, "dump", "--pid", str(pid), *options]):
                return text
    return _of_kernel(pid)


def _dump(command: list[str]) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
        )
        return done.stdout[:_MOST].decode("utf-8", "replace")
    return ""


def _of_kernel(pid: int) -> str:
    """State and place of each thread, and the kernel's stack where it may be read."""
    parts = []
    for thread in sorted(Path(f"/proc/{pid}/task").glob("[0-9]*")):
        state = [
            line
            for line in _read(thread / "status").splitlines()
            if line.startswith(("Name:", "State:"))
        ]
        waits = _read(thread / "wchan").strip("0")
        told = [*state, *([f"waits in: {waits}"] if waits else ()), _read(thread / "stack").strip()]
        parts.append("\n".join([f"thread {thread.name}", *filter(None, told)]))
    return "\n\n".join(parts)[:_MOST]


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""
