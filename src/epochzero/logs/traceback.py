"""Python tracebacks, read into frames and exceptions: plain, chained, exception groups, IPython,
nested in the message of a wrapper.

Input are lines without their prefixes. Many logs that people pass on have lost their indentation,
so that is used where it is there and not relied upon. ``stacks`` reads the other languages'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

Link = Literal["", "context", "cause", "inner", "group"]
"""How an exception relates to the one printed before it: ``context`` was raised while that one was
handled, ``cause`` was raised from it, ``inner`` is what that one wraps, ``group`` is one of several
in a group."""

LONGEST_TRACEBACK = 4000
LONGEST_MESSAGE = 60
LONGEST_CODE = 200
FROM_USER_CODE = "from user code:"
MOST_NESTED = 8
IN_USER_CODE = "in user code:"


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack.

    Attributes:
        file: as printed.
        line: 1-based; None where the trace does not say.
        function: its name; empty where the trace does not say.
        code: the source line, where it is printed.
    """

    file: str
    line: int | None
    function: str
    code: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LoggedError:
    """One exception of a traceback.

    Attributes:
        type: as printed, with its module if that is printed; empty where the log ends before it.
        message: without the type; may span lines.
        at: number of the line with type and message.
        frames: outermost call first.
        link: relation to the exception printed before it.
    """

    type: str
    message: str
    at: int
    frames: tuple[Frame, ...]
    link: Link = ""

    @property
    def text(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Traceback:
    """The exceptions of one traceback in the order of print, and the lines that it spans."""

    raised: tuple[LoggedError, ...]
    start: int
    end: int


HEADER = "Traceback (most recent call last):"
_HEADER = re.compile(
    r"^\W{0,12}(?:\w+ |Exception Group |[\w.]+: )?Traceback \(most recent call last\):?"
)
_ONE_LINE = re.compile(
    r"Traceback \(most recent call last\): *File \"(?P<stack>.*?)"
    r"(?:(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)): ?(?P<message>.*)$"
    r"|(?P<bare>(?<= )[A-Z]\w*(?:Error|Exception|Interrupt))(?: [^(]*)?$)"
)
_ONE_LINE_FRAME = re.compile(r'"?(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S+)')
_IPYTHON_HEADER = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)\s{2,}Traceback \(most recent call last\)")
_PYTHON_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?:, in ?(?P<function>.*))?$'
)
_IPYTHON_FRAMES = (
    re.compile(
        r"^(?:Cell |Input )?In ?\[(?P<cell>\d+| )\],? (?:line (?P<line>\d+)"
        r"|in (?P<function>[^\n]*))(?:, in (?P<inner>[^\n]*))?"
    ),
    re.compile(r"^File (?P<file>\S[^\n]*?):(?P<line>\d+)(?:, in (?P<function>[^\n]*))?$"),
    re.compile(
        r"^(?P<file>(?:[~/.\w][^\s:]*\.pyx?|[A-Za-z]:\\[^\s:]*\.pyx?|<ipython-input-[^>]*>"
        r"|<__array_function__ internals>)) in (?P<function>[^\n]+)$"
    ),
)
_AUTOGRAPH_FRAME = re.compile(r"^\s+(?P<file>\S+\.py):(?P<line>\d+) (?P<function>\w+) +\*?")
_ARROW = re.compile(r"^-+> (?P<line>\d+)\b")
_EXCEPTION = re.compile(
    r"^(?P<type>[A-Za-z_][\w.]*(?:\([\w.]+\))?(?:\[[\w., ]+\])?)(?::(?P<message>(?:\s.*)?|\S.*))?$"
)
_TELLING_TYPE = re.compile(
    r"(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Timeout|Fault|Failure|Abort|Refused"
    r"|Found|Denied|Killed|Lost|Empty|Full|Invalid\w*|Unsupported\w*|Died|Expired|Conflict"
    r"|Mismatch|NotSupported|NaN|\w\.error)(?:\([\w.]+\))?$"
)
_LINKS: dict[str, Link] = {
    "During handling of the above exception": "context",
    "The above exception was the direct cause": "cause",
}
_ANNOUNCES = re.compile(
    r"(?:Exception encountered when calling [^\n]*|Graph execution error:)(?:\n|$)"
)
_DETAIL = re.compile(r"\s|Detected at node|Stack trace for op definition|Node: |File \"")
IGNORED = "Exception ignored in"
"""Start of the line above an exception that Python cannot raise, as in a destructor."""
# What begins something of its own below a message.
_NEXT = (
    *_LINKS,
    IGNORED,
    "Exception in thread ",
    "Original exception was:",
    "Process finished with exit code",
    "epochzero: ",
    "slurmstepd: ",
    "srun: ",
    "wandb: ",
)
_CHILD_PROCESS = re.compile(r"Process \S+:$")
_STEP = re.compile(r"(?i)^\W{0,3}(?:epoch|(?:global[ _])?step|iter(?:ation)?)s?\b\W{0,3}\d")
_JAVA = re.compile(r"^: (?:[a-z_]\w*\.)+[A-Z]\w*")
_RAISE = re.compile(r"^\s*raise (?P<type>[\w.]+)\((?:f?[\"'](?P<message>[^\"']*)[\"'])?")
_SKIPPED = re.compile(
    r'^\s*(?:\^+|[~^]+|\.\.\.|\[Previous line repeated .*|"""|\(\.\.\.\)|-{20,})\s*$'
)
_GROUP_MEMBER = re.compile(r"^\s*(?:\+-)?\+-+ (?:\d+|\.\.\.) -+")
_GROUP_END = re.compile(r"^\s*\+-{20,}\s*$")
_RAILED = re.compile(r"^\s*[|+](?! Exception Group Traceback)|^\s*\| ")
_RAIL = re.compile(r"^\s*[|+](?: |$)")
MOST_LINES_BETWEEN = 16
"""Lines between two tracebacks of a chain: a message can have several paragraphs."""
MOST_RAISED = 32
"""Exceptions read of one traceback; a log can repeat a header without end."""


def is_header(line: str) -> bool:
    """Whether a Python traceback begins at this line."""
    return "Traceback (most recent call last)" in line and (
        _HEADER.match(line) is not None
        or _IPYTHON_HEADER.match(line) is not None
        or line.rstrip().endswith(HEADER)  # printed behind other output
        or "%|" in line  # printed into a progress bar
        or _ONE_LINE.search(line) is not None
    )


def parse(
    lines: Sequence[str], start: int, breaks: Sequence[bool] | None = None
) -> Traceback | None:
    """Reads the Python traceback whose header is line ``start``.

    Args:
        lines: one process's lines in order, without prefixes.
        start: number of the header line.
        breaks: for each line whether a new log record begins there; a message ends before it.

    Returns:
        The traceback with all exceptions chained to it; None when nothing can be read from it.
    """
    reader = _TracebackReader(lines, breaks)
    raised = reader.chain(start)
    return Traceback(tuple(raised), start, reader.at) if raised else None


class _TracebackReader:
    """Reads a chain of tracebacks; ``at`` is the first line not read yet."""

    def __init__(self, lines: Sequence[str], breaks: Sequence[bool] | None, depth: int = 0) -> None:
        self.lines = lines
        self.breaks = breaks
        self.depth = depth
        self.at = 0

    def chain(self, start: int) -> list[LoggedError]:
        raised: list[LoggedError] = []
        link: Link = ""
        self.at = start
        while self.at < len(self.lines) and len(raised) < MOST_RAISED:
            line = self.lines[self.at]
            if "+ Exception Group Traceback" in line and self.depth < MOST_NESTED:
                raised += self._group(link)
            elif flat := _ONE_LINE.search(line):
                raised.append(_flat(flat, self.at, link))
                self.at += 1
            elif ipython := _IPYTHON_HEADER.match(line):
                exception = self._ipython(ipython["type"], link)
                self._append(raised, exception)
                if exception is not None:
                    self._append(raised, self._below(exception))
            else:
                self._plain(raised, link)
            next_link = self._link()
            if next_link is None:
                break
            link = next_link
        return raised

    def _append(self, raised: list[LoggedError], exception: LoggedError | None) -> None:
        if exception is not None:
            raised.append(exception)

    def _link(self) -> Link | None:
        """Moves to the next traceback of the chain; tells how it is linked."""
        link: Link | None = None
        for at in range(self.at, min(len(self.lines), self.at + MOST_LINES_BETWEEN)):
            line = self.lines[at].strip()
            if is_header(line):
                self.at = at if link is not None else self.at
                return link
            if link is None:
                link = next((kind for text, kind in _LINKS.items() if line.startswith(text)), None)
            elif line and line != '"""' and not line.startswith("----"):
                return None
            if link is None and (self._breaks_at(at) or line.startswith(_NEXT)):
                return None
        return None

    def _plain(self, raised: list[LoggedError], link: Link) -> None:
        if len(raised) >= MOST_RAISED:
            self.at += 1
            return
        header = self.lines[self.at]
        indent = _indent(header) if _HEADER.match(header) else 0
        ignored = self.at > 0 and self.lines[self.at - 1].startswith(IGNORED)
        self.at += 1
        frames, intact = self._frames(indent)
        headline = self.lines[self.at].strip() if self.at < len(self.lines) else ""
        found = _exception(headline, strict=not intact)
        if found is None:
            self._append(raised, self._cut_off(frames, link))
            return
        at = self.at
        self.at += 1
        if is_header(found[1]) and len(raised) < MOST_RAISED:
            # The whole message is another traceback, whose header stands on this line.
            raised.append(LoggedError(found[0], "", at, tuple(frames), link))
            self.at = at
            self._plain(raised, "inner")
            return
        # Python prints a colon below an ignored exception even if it has no message.
        alone = not found[1] and (ignored or not headline.endswith(":"))
        message, nested_at = ("", None) if alone else self._message(found[1], indent)
        raised.append(LoggedError(found[0], message, at, (*frames, *self._traced()), link))
        if nested_at is not None and len(raised) < MOST_RAISED:
            self.at = nested_at
            self._plain(raised, "inner")
        else:
            self._append(raised, self._below(raised[-1]))

    def _frames(self, indent: int) -> tuple[list[Frame], bool]:
        """Reads frames until the exception's line; tells whether indentation is intact."""
        frames: list[Frame] = []
        intact = True
        code_may_follow = False
        first = self.at
        while self.at < min(len(self.lines), first + LONGEST_TRACEBACK):
            line = self.lines[self.at]
            if frame := _PYTHON_FRAME.match(line):
                intact = intact and _indent(line) > indent
                function = frame["function"] or ""
                frames.append(Frame(frame["file"], int(frame["line"]), function.strip()))
                code_may_follow = True
            elif self._breaks_at(self.at) and frames and not code_may_follow:
                break
            elif not line.strip():
                if not self._goes_on():
                    break
            elif _SKIPPED.match(line):
                pass
            elif (intact and frames and _indent(line) > indent) or (
                code_may_follow and not intact and not _looks_raised(line)
            ):
                if code_may_follow:
                    last = frames.pop()
                    code = line.strip()[:LONGEST_CODE]
                    frames.append(Frame(last.file, last.line, last.function, code))
                code_may_follow = False
            elif is_header(line) and frames:
                break
            else:
                break
            self.at += 1
        return frames, intact and bool(frames)

    def _cut_off(self, frames: list[Frame], link: Link) -> LoggedError | None:
        """What a traceback that ends before its last line was about to say, if it tells."""
        at = self.at - 1
        if not frames:
            alone = self.lines[at].lstrip().startswith(HEADER)
            ended = alone and not any(line.strip() for line in self.lines[self.at :])
            return LoggedError("", "", at, (), link) if ended else None
        if found := _RAISE.match(self.lines[at]):
            return LoggedError(found["type"], found["message"] or "", at, tuple(frames), link)
        ended = self.at == len(self.lines) or not self.lines[self.at].strip()
        return LoggedError("", "", at, tuple(frames), link) if ended else None

    def _goes_on(self) -> bool:
        """Whether after the blank line here a frame or an exception follows."""
        for line in self.lines[self.at + 1 : self.at + 3]:
            if line.strip():
                return bool(_PYTHON_FRAME.match(line)) or _looks_raised(line)
        return False

    def _message(self, first: str, indent: int) -> tuple[str, int | None]:
        """Reads the rest of a message; tells where a traceback nested in it begins."""
        parts = [first]
        begin = self.at
        while self.at < min(len(self.lines), begin + LONGEST_MESSAGE):
            line = self.lines[self.at]
            if is_header(line):
                # A nested traceback belongs to the message; another one stands on its own.
                announced = self.lines[self.at - 1].rstrip().endswith(":")
                nested = announced or _indent(line) > indent or "Original Traceback" in line
                return _joined(parts), self.at if nested else None
            if (
                '"""' in line
                and self.at + 1 < len(self.lines)
                and is_header(self.lines[self.at + 1])
            ):
                return _joined(parts), self.at + 1
            if not line.strip():
                return _joined(parts), self._announced()
            if self._breaks_at(self.at) or _begins_anew(line):
                break
            if _PYTHON_FRAME.match(line) and _is_remote(parts[-1]):
                return _joined(parts[:-1]), self.at - 1
            parts.append(line.rstrip())
            self.at += 1
        return _joined(parts), None

    def _traced(self) -> tuple[Frame, ...]:
        """The frames of the user's code that torch.compile prints below its own."""
        frames: list[Frame] = []
        has_header = False
        for line in self.lines[self.at : self.at + 40]:
            if line.strip() == FROM_USER_CODE:
                has_header = True
            elif frame := _PYTHON_FRAME.match(line):
                if not has_header:
                    break
                frames.append(Frame(frame["file"], int(frame["line"]), _called(frame["function"])))
            elif is_header(line) or (has_header and not line.strip() and frames):
                break
        return tuple(frames)

    def _announced(self) -> int | None:
        """Where a traceback begins that the blank line here and a line of text lead over to."""
        for at in range(self.at + 1, min(len(self.lines), self.at + 4)):
            line = self.lines[at]
            if is_header(line):
                has_header = self.lines[at - 1].strip()
                return (
                    at
                    if "Original Traceback" in line or has_header.startswith("-- Process")
                    else None
                )
        return None

    def _below(self, outer: LoggedError) -> LoggedError | None:
        """What TensorFlow and Keras put below a message that only announces it."""
        if outer.message.endswith(IN_USER_CODE):
            return self._user_code()
        if not _ANNOUNCES.match(outer.message):
            return None
        frames: list[Frame] = []
        for at in range(self.at, min(len(self.lines), self.at + 60)):
            line = self.lines[at]
            if is_header(line):
                return None
            if frame := _PYTHON_FRAME.match(line):
                frames.append(Frame(frame["file"], int(frame["line"]), _called(frame["function"])))
            elif line.strip() and not _DETAIL.match(line):
                self.at = at + 1
                message, _ = self._message(line.strip(), 0)
                return LoggedError(outer.type, message, at, tuple(frames) or outer.frames, "inner")
        return None

    def _user_code(self) -> LoggedError | None:
        """Reads what Keras and AutoGraph put below "in user code:": frames, then the exception."""
        frames: list[Frame] = []
        for at in range(self.at, min(len(self.lines), self.at + 200)):
            line = self.lines[at]
            if frame := _PYTHON_FRAME.match(line):
                frames.append(Frame(frame["file"], int(frame["line"]), _called(frame["function"])))
            elif frame := _AUTOGRAPH_FRAME.match(line):
                frames.append(Frame(frame["file"], int(frame["line"]), frame["function"]))
            elif _looks_raised(line) and (found := _exception(line.strip(), strict=True)):
                self.at = at + 1
                message, _ = self._message(found[1], 0)
                return LoggedError(found[0], message, at, tuple(frames), "inner")
            elif is_header(line):
                break
        return None

    def _breaks_at(self, at: int) -> bool:
        return self.breaks is not None and self.breaks[at]

    def _ipython(self, expected: str, link: Link) -> LoggedError | None:
        frames: list[Frame] = []
        short = expected.rsplit(".", 1)[-1]
        self.at += 1
        first = self.at
        while self.at < min(len(self.lines), first + LONGEST_TRACEBACK):
            line = self.lines[self.at]
            if frame := _ipython_frame(line):
                frames.append(frame)
            elif (arrow := _ARROW.match(line)) and frames:
                # Frames of newer versions name the line before.
                number = frames[-1].line or int(arrow["line"])
                code = line[arrow.end() :].strip()[:LONGEST_CODE]
                frames[-1] = replace(frames[-1], line=number, code=code)
            elif python := _PYTHON_FRAME.match(line):
                frames.append(Frame(python["file"], int(python["line"]), python["function"] or ""))
            elif is_header(line):
                return None
            else:
                found = _EXCEPTION.match(line.rstrip())
                if found and found["type"].rsplit(".", 1)[-1] == short:
                    at = self.at
                    self.at += 1
                    message, _ = self._message((found["message"] or "").strip(), 0)
                    return LoggedError(found["type"], message, at, tuple(frames), link)
            self.at += 1
        return None

    def _group(self, link: Link) -> list[LoggedError]:
        """Reads an exception group: the rails in front of its lines are taken off first."""
        begin = self.at
        end = begin + 1
        while end < len(self.lines) and _RAILED.match(self.lines[end]):
            end += 1
        inner: list[str] = []
        sections = [0]
        for number, line in enumerate(self.lines[begin:end]):
            if _GROUP_MEMBER.match(line):
                sections.append(number + 1)
            rule = sections[-1] == number + 1 or _GROUP_END.match(line)
            inner.append("" if rule else _RAIL.sub("", line))
        raised: list[LoggedError] = []
        for first, after in pairwise([*sections, len(inner) + 1]):
            relation: Link = "group" if first else link
            for exception in _TracebackReader(inner[: after - 1], None, self.depth + 1).section(
                first
            ):
                raised.append(
                    replace(exception, at=begin + exception.at, link=exception.link or relation)
                )
        self.at = end
        return raised[:MOST_RAISED]

    def section(self, start: int) -> list[LoggedError]:
        """Reads a member of a group: a chain, or an exception that was never raised."""
        if start >= len(self.lines):
            return []
        line = self.lines[start]
        if is_header(line):
            return self.chain(start)
        found = _exception(line.strip(), strict=False)
        if found is None:
            return []
        self.at = start + 1
        message, _ = self._message(found[1], 0)
        return [LoggedError(found[0], message, start, ())]


def _flat(found: re.Match[str], at: int, link: Link) -> LoggedError:
    """A traceback that lost its line ends."""
    frames = tuple(
        Frame(frame["file"], int(frame["line"]), frame["function"])
        for frame in _ONE_LINE_FRAME.finditer(found["stack"])
    )
    return LoggedError(
        found["type"] or found["bare"], (found["message"] or "").strip(), at, frames, link
    )


def _begins_anew(line: str) -> bool:
    """Whether a line below a message is no part of it: another announcement, another language's
    exception, or the next step of a job that went on.
    """
    begun = line.lstrip().startswith(_NEXT) or _CHILD_PROCESS.match(line)
    return bool(begun or _JAVA.match(line) or _STEP.match(line))


def _called(function: str | None) -> str:
    """The name of a function without the star that AutoGraph marks converted code with."""
    return (function or "").rstrip(" *")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(parts: list[str]) -> str:
    return "\n".join(parts).strip()


_REMOTE = re.compile(r"^\W*(?:\[\d+m)?ray::|\(pid=\d+, (?:ip|host)=[\w.-]+\)$")


def _is_remote(line: str) -> bool:
    """Whether the line names the task whose traceback Ray passes on below it."""
    return _REMOTE.search(line.strip()) is not None


def _exception(line: str, *, strict: bool) -> tuple[str, str] | None:
    """Type and message of an exception's line.

    Args:
        line: without indentation.
        strict: indentation does not vouch for the line, so the type must look like one.
    """
    found = _EXCEPTION.match(line)
    if found is None or (strict and not _TELLING_TYPE.search(found["type"])):
        return None
    return found["type"], (found["message"] or "").strip()


def _looks_raised(line: str) -> bool:
    return _exception(line.strip(), strict=True) is not None


def _ipython_frame(line: str) -> Frame | None:
    for pattern in _IPYTHON_FRAMES:
        if found := pattern.match(line):
            groups = found.groupdict()
            file = groups.get("file") or f"In [{groups.get('cell')}]"
            function = groups.get("inner") or groups.get("function") or "<module>"
            number = groups.get("line")
            return Frame(file, int(number) if number else None, function.split("(")[0].strip())
    return None
