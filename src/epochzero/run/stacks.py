"""What a process is doing: the stacks of its threads, by py-spy where it is installed and permitted.

Otherwise what the kernel knows: where the process waits, and its state. Sources: py-spy's documentation
(``py-spy dump --json``); proc(5): stack, wchan, status.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from epochzero.run.usage import is_python

if TYPE_CHECKING:
    from epochzero.logs.traceback import Frame


_SECONDS = 10.0
_MOST = 1 << 20
_LONGEST_CODE = 60
_NOT_INSTALLED = "py-spy is not installed: pip install 'epochzero[stacks]'"
_NOT_PERMITTED = (
    "py-spy is not permitted to read the processes: containers require the capability SYS_PTRACE, hosts "
    "kernel.yama.ptrace_scope=0"
)
# Where the standard library and data loaders wait for another thread or process. They wake up at
# intervals to look, which is no progress.
_WAITING = frozenset(
    ("threading", "queue", "queues", "connection", "selectors", "subprocess", "synchronize",
     "process", "popen_fork", "dataloader", "_base", "locks", "base_events")
)  # fmt: skip
_COLLECTIVES = re.compile(r"/torch/distributed/(?!elastic/)")
"""Without the launcher, which only waits for its workers."""
_BACKWARD = "_engine_run_backward"
"""Where DistributedDataParallel waits for the other ranks' gradients."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What a process is doing.

    Attributes:
        frames: of its main thread, the outermost first; none where only the kernel was asked.
        text: all its threads, for a person.
    """

    frames: tuple[Frame, ...]
    text: str

    @property
    def user_frames(self) -> tuple[Frame, ...]:
        """The frames down to the innermost one of the user's own code."""
        # A job that does not hang needs nothing of diagnose, which takes long to load.
        from epochzero.logs.user_code import is_user_frame

        own = [number for number, frame in enumerate(self.frames) if is_user_frame(frame)]
        return self.frames[: own[-1] + 1] if own else self.frames[:1]

    @property
    def place(self) -> str:
        """Where in the user's code it is, such as ``train.py:12``; empty where that is not known."""
        if not self.frames:
            return ""
        frame = self.user_frames[-1]
        return f"{PurePath(frame.file).name}:{frame.line}"

    @property
    def call(self) -> str:
        """What is called there, such as ``queue.get``; else the line of code."""
        below = self.frames[len(self.user_frames) :]
        if below and not below[0].function.startswith("_"):
            return f"{PurePath(below[0].file).stem}.{_name(below[0])}"
        code = self.user_frames[-1].code if self.frames else ""
        return code.partition("  #")[0][:_LONGEST_CODE]

    @property
    def collective(self) -> str:
        """The call in which it waits for the other ranks, such as ``all_reduce``; empty for none."""
        below = self.frames[len(self.user_frames) :]
        for frame in reversed(below):
            name = _name(frame)
            if _COLLECTIVES.search(frame.file) and name != "wrapper" and not name.startswith("_"):
                return name
        if any(_name(frame) == _BACKWARD for frame in below):
            return "backward"
        # Handles of asynchronous collectives are C++: their wait() has no frame of its own.
        if self.frames and not below and ".wait(" in self.user_frames[-1].code:
            return "wait"
        return ""

    @property
    def waits_for_others(self) -> bool:
        """Whether it is in a call that waits for another rank, process or thread."""
        if self.collective:
            return True
        below = self.frames[len(self.user_frames) :]
        return bool(below) and any(PurePath(frame.file).stem in _WAITING for frame in below)


class StackReader:
    """Reads stacks.

    Attributes:
        problem: why stacks of Python could not be read, and what to do; empty while they can.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Looks for py-spy on the job's path and next to the Python that runs this."""
        self._py_spy = find_py_spy(environment)
        self.problem = "" if self._py_spy else _NOT_INSTALLED

    def read(self, pid: int) -> Stack:
        """What a process is doing now. It is stopped for milliseconds."""
        if self._py_spy is not None and is_python(pid):
            threads = self._dump(pid)
            if threads:
                frames = _frames(_main(threads, pid))
                return Stack(frames, "\n\n".join(map(_text, threads))[:_MOST])
        return Stack((), kernel_stack(pid))

    def native(self, pid: int) -> str:
        """Its threads with the frames of C and C++, which takes seconds; empty where it cannot be read."""
        return self._run(pid, "--native") if self._py_spy is not None else ""

    def _dump(self, pid: int) -> list[dict[str, Any]]:
        text = self._run(pid, "--json")
        with suppress(ValueError):
            threads = json.loads(text) if text else []
            return [thread for thread in threads if thread["pid"] == pid]
        return []

    def _run(self, pid: int, option: str) -> str:
        command = [str(self._py_spy), "dump", "--pid", str(pid), option]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
            )
        except subprocess.CalledProcessError as error:
            if b"ermission denied" in error.stderr.lower() or b"not permitted" in error.stderr:
                self.problem = _NOT_PERMITTED
            return ""
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.decode("utf-8", "replace")


def find_py_spy(environment: Mapping[str, str]) -> str | None:
    """The program, on the job's path or next to the Python that runs this; None if it is missing."""
    beside = os.path.dirname(sys.executable)
    return shutil.which("py-spy", path=f"{environment.get('PATH', os.defpath)}{os.pathsep}{beside}")


def kernel_stack(pid: int) -> str:
    """State and place of each thread, and the kernel's stack where it may be read."""
    parts = []
    for thread in sorted(Path(f"/proc/{pid}/task").glob("[0-9]*")):
        state = [
            line
            for line in _read(thread / "status").splitlines()
            if line.startswith(("Name:", "State:"))
        ]
        waits = _read(thread / "wchan").strip("0")
        found = [
            *state,
            *([f"waits in: {waits}"] if waits else ()),
            _read(thread / "stack").strip(),
        ]
        parts.append("\n".join([f"thread {thread.name}", *filter(None, found)]))
    return "\n\n".join(parts)[:_MOST]


def _main(threads: Sequence[Mapping[str, Any]], pid: int) -> Mapping[str, Any]:
    """The main thread, by its number or, where a container has numbers of its own, by its name."""
    by_number = [thread for thread in threads if thread.get("os_thread_id") == pid]
    by_name = [thread for thread in threads if thread.get("thread_name") == "MainThread"]
    return (by_number or by_name or list(threads))[0]


def _frames(thread: Mapping[str, Any]) -> tuple[Frame, ...]:
    import linecache

    from epochzero.logs.traceback import Frame

    return tuple(
        Frame(
            str(frame["filename"]),
            int(frame["line"]),
            str(frame["name"]),
            linecache.getline(str(frame["filename"]), int(frame["line"])).strip(),
        )
        for frame in reversed(thread["frames"])
    )


def _text(thread: Mapping[str, Any]) -> str:
    lines = [
        f'  File "{frame.file}", line {frame.line}, in {frame.function}'
        + (f"\n    {frame.code}" if frame.code else "")
        for frame in _frames(thread)
    ]
    name = thread.get("thread_name") or thread.get("os_thread_id") or thread.get("thread_id")
    return "\n".join([f"Thread {name} (most recent call last):", *lines])


def _name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2]


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""
