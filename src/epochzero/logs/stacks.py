"""Stacks that are not Python tracebacks: pytest, faulthandler, C++, JVM, Rust and Go.

Each reader takes the lines of one process and the number of a line where such a stack may begin,
and gives what was raised and the first line after it, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from epochzero.logs.traceback import Frame, LoggedError, Traceback

_PYTEST_ERROR = re.compile(r"^E {3,}(?P<text>\S.*)$")
_PYTEST_FRAME = re.compile(r"^(?P<file>[^\s:]+(?::\\[^\s:]+)?\.py):(?P<line>\d+): ?(?P<rest>.*)$")
_PYTEST_DEF = re.compile(r"^\s*(?:async )?def (?P<function>\w+)\(")
_PYTEST_LOOKBACK = 400
_RAISED = re.compile(r"(?:Error|Exception|Exit|Interrupt|Warning)$")
_TYPED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*): ?(?P<message>.*)$")
_FATAL = re.compile(r"(?P<type>Fatal Python error|Timeout)(?:: | (?=\())(?P<message>.+)$")
_FAULT_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.+)$')
_TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '(?P<type>[^']+)'|"
    r"without an active exception|recursively)"
)
_WHAT = re.compile(r"^\s*what\(\): *(?P<message>.*)$")
_JVM = re.compile(
    r"^(?:Exception in thread \"[^\"]*\" |Caused by: |.{0,80}?: )?"
    r"(?P<type>(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable|Failure)[\w$]*)"
    r"(?:: (?P<message>.*))?$"
)
_JVM_FRAME = re.compile(
    r"^.{0,40}?\s*at (?P<function>[\w.$<>/-]+)\((?P<file>[^():]*)(?::(?P<line>\d+))?\)"
)
_JVM_CAUSE = re.compile(r"^.{0,40}?Caused by: ")
_RUST = re.compile(r"thread '(?P<thread>[^']*)' (?:\(\d+\) )?panicked at (?P<rest>.*)$")
_RUST_PLACE = re.compile(r"^(?:'(?P<message>.*)', )?(?P<file>[^:]+\.rs):(?P<line>\d+)")
_GO = re.compile(r"^panic: (?P<message>.+)$")


def parse(lines: Sequence[str], at: int) -> Traceback | None:
    """Reads the stack that begins at line ``at``, if one does."""
    line = lines[at]
    for word, reader in _READERS:
        if word in line and (found := reader(lines, at)) is not None:
            return found
    return None


def _pytest(lines: Sequence[str], at: int) -> Traceback | None:
    first = _PYTEST_ERROR.match(lines[at])
    if first is None:
        return None
    end = at + 1
    parts = [first["text"]]
    while end < len(lines) and (more := _PYTEST_ERROR.match(lines[end])):
        parts.append(more["text"])
        end += 1
    # What was raised stands first; where its message is another traceback, last.
    first_typed = _TYPED.match(parts[0])
    nested = first_typed is None or "Traceback (most recent call last)" in parts[0]
    typed = first_typed
    for number in range(len(parts) - 1, 0, -1) if nested else ():
        if (inner := _TYPED.match(parts[number])) and _RAISED.search(inner["type"]):
            typed, at, parts = inner, at + number, parts[number:]
            break
    frames = []
    within = ""
    for line in lines[max(0, at - _PYTEST_LOOKBACK) : at]:
        if defined := _PYTEST_DEF.match(line):
            within = defined["function"]
        elif frame := _PYTEST_FRAME.match(line):
            function = frame["rest"].removeprefix("in ").strip()
            frames.append(Frame(frame["file"], int(frame["line"]), function))
        elif line.startswith(("=====", "_____")):
            frames.clear()
    # The place of the error stands below it, with the name of the exception.
    name = ""
    for number in range(end, min(len(lines), end + 4)):
        if place := _PYTEST_FRAME.match(lines[number]):
            frames.append(Frame(place["file"], int(place["line"]), within))
            name = place["rest"].strip()
            end = number + 1
            break
    if typed is not None and typed["type"][0].isalpha():
        kind, message = typed["type"], "\n".join([typed["message"], *parts[1:]])
    else:
        kind, message = (name or "AssertionError"), "\n".join(parts)
    return Traceback((LoggedError(kind, message.strip(), at, tuple(frames)),), at, end)


def _fatal(lines: Sequence[str], at: int) -> Traceback | None:
    found = _FATAL.search(lines[at])
    if found is None:
        return None
    threads: dict[str, list[Frame]] = {}
    thread = ""
    end = at + 1
    while end < min(len(lines), at + 400):
        line = lines[end]
        if frame := _FAULT_FRAME.match(line):
            call = Frame(frame["file"], int(frame["line"]), frame["function"])
            threads.setdefault(thread, []).append(call)
        elif "most recent call first" in line:
            thread = line.split("(")[0].strip()
        elif line.strip():
            break
        end += 1
    # The thread that failed is called the current one; others can stand above it.
    current = next((name for name in threads if name.startswith("Current")), None)
    frames = threads[current] if current else next(iter(threads.values()), [])
    if found["type"] == "Timeout" and not frames:
        return None
    raised = LoggedError(found["type"], found["message"], at, tuple(reversed(frames)))
    return Traceback((raised,), at, end)


def _terminate(lines: Sequence[str], at: int) -> Traceback | None:
    found = _TERMINATE.search(lines[at])
    if found is None:
        return None
    for number in range(at + 1, min(len(lines), at + 5)):
        if what := _WHAT.match(lines[number]):
            end = number + 1
            parts = [what["message"]]
            while end < len(lines) and len(parts) < 20 and lines[end].strip():
                if lines[end].startswith(
                    ("Exception raised from", "frame #", "Stack trace", "***")
                ):
                    break
                parts.append(lines[end].rstrip())
                end += 1
            kind = found["type"] or "terminate"
            while len(parts) > 1 and parts[0].strip() in ("", "Error:"):
                number += 1
                parts.pop(0)
            return Traceback((LoggedError(kind, "\n".join(parts).strip(), number, ()),), at, end)
    return None


def _jvm(lines: Sequence[str], at: int) -> Traceback | None:
    raised: list[LoggedError] = []
    number = at
    while number < len(lines) and (found := _JVM.match(lines[number].strip())):
        headline = number
        frames: list[Frame] = []
        number += 1
        message = [found["message"] or ""]
        while number < min(len(lines), headline + 400):
            line = lines[number]
            if frame := _JVM_FRAME.match(line):
                place = int(frame["line"]) if frame["line"] else None
                frames.append(Frame(frame["file"], place, frame["function"]))
            elif re.match(r"^\s*\.\.\. \d+ (?:more|common frames)", line):
                pass
            elif _JVM_CAUSE.match(line) or frames or number > headline + 6 or not line.strip():
                break
            else:
                message.append(line.rstrip())
            number += 1
        if not frames and not raised:
            return None
        raised.append(
            LoggedError(
                found["type"],
                "\n".join(message).strip(),
                headline,
                tuple(reversed(frames)),
                "inner" if raised else "",
            )
        )
        if number >= len(lines) or not _JVM_CAUSE.match(lines[number]):
            break
    return Traceback(tuple(raised), at, number) if raised else None


def _rust(lines: Sequence[str], at: int) -> Traceback | None:
    found = _RUST.search(lines[at])
    if found is None:
        return None
    place = _RUST_PLACE.match(found["rest"])
    frames = (Frame(place["file"], int(place["line"]), ""),) if place else ()
    if place and place["message"]:
        return Traceback((LoggedError("panic", place["message"], at, frames),), at, at + 1)
    if at + 1 < len(lines) and place:
        return Traceback((LoggedError("panic", lines[at + 1].strip(), at + 1, frames),), at, at + 2)
    return Traceback((LoggedError("panic", found["rest"], at, frames),), at, at + 1)


def _go(lines: Sequence[str], at: int) -> Traceback | None:
    found = _GO.match(lines[at])
    if found is None or not any(line.startswith("goroutine ") for line in lines[at + 1 : at + 5]):
        return None
    return Traceback((LoggedError("panic", found["message"], at, ()),), at, at + 1)


_READERS: tuple[tuple[str, Callable[[Sequence[str], int], Traceback | None]], ...] = (
    ("E   ", _pytest),
    ("Fatal Python error", _fatal),
    ("Timeout (", _fatal),
    ("terminate called", _terminate),
    ("panicked at", _rust),
    ("panic: ", _go),
    ("Exception", _jvm),
    ("Error", _jvm),
)
