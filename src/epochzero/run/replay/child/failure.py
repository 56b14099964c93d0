"""How a job failed, as JSON data: an exception with its frames, an exit code, a signal, a non-finite loss."""

from __future__ import annotations

import inspect
import linecache
import re
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from epochzero.run.watch.child.places import is_user, locals_of

MOST_FRAMES = 60
MOST_MESSAGE = 10_000
MOST_CODE = 400
_WORKER = "Original Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)\n    (.*)', re.MULTILINE)
_TYPE = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
_OURS = "run/replay/child/"
Encode = Callable[[Any], Any]


def of_exception(error: BaseException, encode: Encode) -> dict[str, Any]:
    """Describe an exception: type, message, frames, and the arguments of the user's innermost function.

    Args:
        error: the exception that ended the job; of a chain, the last one.
        encode: encodes an argument as JSON data.
    """
    walked = list(_walked(error.__traceback__))
    own = [(frame, line) for frame, line in walked if is_user(frame.f_code.co_filename)]
    frames = [_told(frame, line) for frame, line in walked[-MOST_FRAMES:]]
    record = {
        "kind": "exception",
        "type": _type(error),
        "message": str(error)[:MOST_MESSAGE],
        "frames": frames,
        "place": _told(*own[-1]) if own else None,
        "arguments": _arguments(own[-1][0], encode) if own else {},
    }
    return record | _of_worker(str(error), frames)


def _of_worker(message: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Type, frames and place of a failure in a data-loader worker, whose traceback is in the message."""
    trace = message.partition(_WORKER)[2]
    found = list(_FRAME.finditer(trace))
    inner = [
        {
            "path": match[1],
            "line": int(match[2]),
            "function": match[3],
            "code": match[4].strip()[:MOST_CODE],
        }
        for match in found
    ]
    own = [frame for frame in inner if is_user(frame["path"])]
    if not own:
        return {}
    record = {"frames": [*frames, *inner][-MOST_FRAMES:], "place": own[-1], "arguments": {}}
    raised = _TYPE.search(trace, found[-1].end())
    return record | ({"type": raised[1]} if raised else {})


def of_exit(code: Any, frame: FrameType | None, encode: Encode) -> dict[str, Any]:
    """Describe the end of a program that exited with a nonzero code."""
    place = _told(frame, frame.f_lineno) if frame is not None else None
    return {
        "kind": "exit",
        "type": "SystemExit",
        "message": str(code)[:MOST_MESSAGE],
        "frames": [place] if place else [],
        "place": place,
        "arguments": _arguments(frame, encode) if frame is not None else {},
    }


def of_signal(number: int) -> dict[str, Any]:
    """Describe the end by a signal."""
    return _without_frames("signal", signal.Signals(number).name, "")


def of_nonfinite(nonfinite: dict[str, Any]) -> dict[str, Any]:
    """Describe a non-finite loss; the operators farthest from the loss come first."""
    place = nonfinite["place"]
    return {
        **_without_frames("nonfinite", "loss", f"the loss is {nonfinite['value']}"),
        "place": {"path": place[0], "line": place[1], "function": "", "code": place[2]}
        if place
        else None,
        "operators": nonfinite["operators"],
    }


def _without_frames(kind: str, type_: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "type": type_, "message": message, "frames": [], "place": None, "arguments": {}}  # fmt: skip


def _type(error: BaseException) -> str:
    kind = type(error)
    plain = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def _walked(trace: TracebackType | None) -> Any:
    while trace is not None:
        if _OURS not in trace.tb_frame.f_code.co_filename:
            yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _told(frame: FrameType, line: int) -> dict[str, Any]:
    code = frame.f_code
    return {
        "path": code.co_filename,
        "line": line,
        "function": code.co_name,
        "code": linecache.getline(code.co_filename, line).strip()[:MOST_CODE],
    }


def _arguments(frame: FrameType, encode: Encode) -> dict[str, Any]:
    """Arguments of a function with their current values; empty for module-level code."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    names = inspect.getargs(frame.f_code)
    held = locals_of(frame)
    given = [*names.args, *filter(None, (names.varargs, names.varkw))]
    return {name: encode(held[name]) for name in given if name in held and name != "self"}
