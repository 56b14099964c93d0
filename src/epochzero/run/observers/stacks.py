"""What a process is doing: the stacks of its threads, by py-spy where it is installed and permitted.

Otherwise the process writes them itself when a signal asks for them (`observers.child.stacks`); of a process
without that handler only what the kernel knows is left: where it waits, and its state. Sources: py-spy's
documentation (``py-spy dump --json --locals``); Python's documentation of faulthandler; proc(5): stack, wchan, status.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from epochzero.run.observers.child.stacks import stack_signal
from epochzero.run.observers.loop_counters import counters_at
from epochzero.run.process.usage import is_python

if TYPE_CHECKING:
    from epochzero.logs.traceback import Frame


_SECONDS = 10.0
_MOST = 1 << 20
_LONGEST_CODE = 60
_NOT_INSTALLED = (
    "the job's Python ignores PYTHONPATH (-I, -E), and py-spy is not installed: "
    "pip install 'epochzero[stacks]'"
)
_NOT_PERMITTED = (
    "the job's Python ignores PYTHONPATH (-I, -E), and py-spy is not permitted to read the processes: "
    "containers require the capability SYS_PTRACE, hosts kernel.yama.ptrace_scope=0"
)
_MOST_USER_FRAMES = 3
_ANSWER_S = 2.0
_ANSWER_IS_WHOLE_S = 0.05
_THREAD = re.compile(r"^(?:Current thread|Thread) (\S+).*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_PEERS = {"recv": ("src", "group_src"), "send": ("dst", "group_dst")}
"""Calls that wait for one other rank, and the arguments that name it."""
# Where the standard library and data loaders wait for another thread or process. They wake up at
# intervals to look, which is no progress.
_WAITING = frozenset(
    ("threading", "queue", "queues", "connection", "selectors", "subprocess", "synchronize",
     "process", "popen_fork", "dataloader", "_base", "locks")
)  # fmt: skip
_EVENT_LOOP = "base_events"
"""Of asyncio, which wakes up for the program's own timers: one that waits for nothing else does not wake up."""
_JOINS = frozenset(("join", "result", "shutdown"))
_THREAD_WAITS = frozenset(("threading", "queue", "_base", "thread"))
_COLLECTIVES = re.compile(r"/torch/distributed/(?!elastic/)")
"""Without the launcher, which only waits for its workers."""
_BACKWARD = "_engine_run_backward"
"""Where DistributedDataParallel waits for the other ranks' gradients."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What a process is doing.

    Attributes:
        frames: of its main thread, the outermost first; none where only the kernel was asked.
        text: all its threads, for a person; the main thread first.
        variables: local variables of each frame and their values; none where only py-spy could read them.
        threads: the kernel's numbers of its other threads that run code of the user or work of a pool; none
            without py-spy.
        helpers: stacks of these threads.
    """

    frames: tuple[Frame, ...]
    text: str
    variables: tuple[Mapping[str, str], ...] = ()
    threads: tuple[int, ...] = ()
    helpers: tuple[Stack, ...] = ()

    @property
    def counters(self) -> Mapping[tuple[str, str], int]:
        """Function and variable -> value, of what counts the iterations of the loops that it is in."""
        found = {}
        for frame, values in zip(self.user_frames, self.variables, strict=False):
            for name in counters_at(frame.file, frame.line or 0):
                if values.get(name, "").isdigit():
                    found[frame.function, name] = int(values[name])
        return found

    @property
    def peer(self) -> int | None:
        """The rank whose message it waits for, in a call that has one sender and one receiver."""
        for frame, values in zip(self.frames, self.variables, strict=False):
            if _COLLECTIVES.search(frame.file):
                for argument in _PEERS.get(_name(frame), ()):
                    if values.get(argument, "").isdigit():
                        return int(values[argument])
        return None

    @property
    def innermost(self) -> str:
        """Where its main thread is, for a screen: the innermost frame, then those of the user's code outwards."""
        if not self.frames:
            return self.text
        below = self.frames[len(self.user_frames) :]
        shown = [*below[-1:], *reversed(self.user_frames[-_MOST_USER_FRAMES:])]
        return "\n".join(map(_line, shown))

    @property
    def sleeps(self) -> bool:
        """Whether it waits for a time only, as far as its code tells."""
        below = self.frames[len(self.user_frames) :]
        return bool(self.frames) and not below and "sleep(" in self.user_frames[-1].code

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
    def waits_for_threads(self) -> bool:
        """Whether it waits for a thread of its own process, as far as its calls tell."""
        below = self.frames[len(self.user_frames) :]
        return not self.collective and any(
            PurePath(frame.file).stem in _THREAD_WAITS for frame in below
        )

    @property
    def joins(self) -> bool:
        """Whether it waits for the end of a thread, or for the result of one."""
        below = self.frames[len(self.user_frames) :]
        return self.waits_for_threads and any(_name(frame) in _JOINS for frame in below)

    @property
    def waits_for_others(self) -> bool:
        """Whether it is in a call that waits for another rank, process or thread."""
        if self.collective:
            return True
        below = self.frames[len(self.user_frames) :]
        modules = {PurePath(frame.file).stem for frame in below}
        return not _WAITING.isdisjoint(modules) and _EVENT_LOOP not in modules


class StackReader:
    """Reads stacks.

    Attributes:
        problem: why stacks of Python could not be read, and what to do; empty while they can.
    """

    def __init__(self, environment: Mapping[str, str], dumps: Path | None = None) -> None:
        """Searches py-spy on the job's path and next to the Python that runs this.

        Args:
            environment: of the job.
            dumps: the file to which the job's processes append their stacks when asked; None for none.
        """
        self._py_spy = find_py_spy(environment)
        self._dumps = dumps
        self.problem = "" if self._py_spy else _NOT_INSTALLED

    def read(self, pid: int) -> Stack:
        """What a process is doing now. It is stopped for milliseconds."""
        if not is_python(pid):
            return Stack((), kernel_stack(pid))
        threads = self._by_py_spy(pid) or self._by_signal(pid)
        if not threads:
            return Stack((), kernel_stack(pid))
        first, *others = _main_first(threads, pid)
        frames = _frames(first)
        values = tuple(
            {str(v["name"]): str(v.get("repr")) for v in frame.get("locals") or ()}
            for frame in reversed(first["frames"])
        )
        text = "\n\n".join(map(_text, [first, *others]))[:_MOST]
        working = [thread for thread in others if _runs_user_code(thread)]
        if any(PurePath(frame.file).stem == "_base" for frame in frames):  # Of concurrent.futures.
            # Results come from pools, and not from a thread that sends signs of life.
            working = [thread for thread in working if _is_of_pool(thread)] or working
        numbers = (thread.get("os_thread_id") for thread in working)
        helpers = tuple(Stack(_frames(thread), _text(thread)) for thread in working)
        return Stack(frames, text, values, tuple(n for n in numbers if n is not None), helpers)

    def native(self, pid: int) -> str:
        """Its threads with the frames of C and C++, which takes seconds; empty where it cannot be read."""
        return self._run(pid, "--native") if self._py_spy is not None else ""

    def _by_py_spy(self, pid: int) -> list[dict[str, Any]]:
        text = self._run(pid, "--json", "--locals") if self._py_spy is not None else ""
        with suppress(ValueError):
            threads = json.loads(text) if text else []
            return [thread for thread in threads if thread["pid"] == pid]
        return []

    def _by_signal(self, pid: int) -> list[dict[str, Any]]:
        """Asks the process itself, if it has the handler: in any other one the signal would end it."""
        if self._dumps is None or not stack_signal() or not _answers(pid, self._dumps):
            return []
        with suppress(OSError), self._dumps.open("rb") as file:
            begin = size = file.seek(0, os.SEEK_END)
            os.kill(pid, stack_signal())
            end, whole = time.monotonic() + _ANSWER_S, 0.0
            while time.monotonic() < end and whole < _ANSWER_IS_WHOLE_S:
                time.sleep(_ANSWER_IS_WHOLE_S / 2)
                known, size = size, file.seek(0, os.SEEK_END)
                whole = whole + _ANSWER_IS_WHOLE_S / 2 if size == known > begin else 0.0
            file.seek(begin)
            return parse_dump(file.read(_MOST).decode("utf-8", "replace"))
        return []

    def _run(self, pid: int, *options: str) -> str:
        command = [str(self._py_spy), "dump", "--pid", str(pid), *options]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
            )
        except subprocess.CalledProcessError as error:
            if b"ermission denied" in error.stderr.lower() or b"not permitted" in error.stderr:
                self.problem = _NOT_PERMITTED
                self._py_spy = None
            return ""
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.decode("utf-8", "replace")


def parse_dump(text: str) -> list[dict[str, Any]]:
    """The threads of a dump of faulthandler, in the form of py-spy's; the main thread is its last."""
    threads: list[dict[str, Any]] = []
    for line in text.splitlines():
        if found := _THREAD.match(line):
            threads.append({"thread_id": found[1], "frames": []})
        elif threads and (frame := _FRAME.match(line)):
            file, number, name = frame.groups()
            threads[-1]["frames"].append({"filename": file, "line": int(number), "name": name})
    if threads:
        threads[-1]["thread_name"] = "MainThread"
    return threads


def _answers(pid: int, dumps: Path) -> bool:
    """Whether a process catches our signal, and has the file open that we read."""
    caught = next(
        (line for line in _read(Path(f"/proc/{pid}/status")).splitlines() if line[:7] == "SigCgt:"),
        "SigCgt: 0",
    )
    if not int(caught.split()[1], 16) >> (stack_signal() - 1) & 1:
        return False
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                if os.path.samefile(entry.path, dumps):
                    return True
    return False


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


def _main_first(threads: Sequence[dict[str, Any]], pid: int) -> Sequence[dict[str, Any]]:
    """The main thread first, by its number or, where a container has numbers of its own, by its name."""
    by_number = [thread for thread in threads if thread.get("os_thread_id") == pid]
    by_name = [thread for thread in threads if thread.get("thread_name") == "MainThread"]
    main = (by_number or by_name or list(threads))[0]
    return [main, *(thread for thread in threads if thread is not main)]


def _runs_user_code(thread: Mapping[str, Any]) -> bool:
    from epochzero.logs.user_code import is_user_frame

    return _is_of_pool(thread) or any(map(is_user_frame, _frames(thread)))


def _is_of_pool(thread: Mapping[str, Any]) -> bool:
    """Whether it carries out work of a pool of threads."""
    return any(
        frame.file.endswith("concurrent/futures/thread.py") and _name(frame) == "run"
        for frame in _frames(thread)
    )


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
    name = thread.get("thread_name") or thread.get("os_thread_id") or thread.get("thread_id")
    return "\n".join([f"Thread {name} (most recent call last):", *map(_line, _frames(thread))])


def _line(frame: Frame) -> str:
    code = f"\n    {frame.code}" if frame.code else ""
    return f'  File "{frame.file}", line {frame.line}, in {frame.function}{code}'


def _name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2]


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""
