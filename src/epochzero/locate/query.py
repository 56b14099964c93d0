"""Search terms from a report or a diagnosis: words by part of the report, frames, paths, names.

A report mixes prose, code, tracebacks and messages, which differ in meaning: therefore its words are
stored by part, and a part can have its own weight in a feature.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from epochzero.code.words import hashes, phrases, words
from epochzero.locate.report import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.diagnose import Diagnosis
    from epochzero.diagnose.model import CodeFrame


PARTS = ("summary", "all", "prose", "code", "traceback", "error")
"""The parts of a report whose words are distinguished."""
MOST_PHRASE_LINES = 200

_FENCE = re.compile(r"^(?:```|~~~).*?(?:^(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>[\w<>.]+))?')
_NOTEBOOK_FRAME = re.compile(
    r"^(?:File )?\[?(?P<file>(?:[A-Za-z]:)?[~/\\.\w][^\s:()\[\]]*\.pyx?)(?:\]\(\S*\))?"
    r"(?::(?P<line>\d+)[,:])? in (?:\w+\.)*(?P<function>[\w<>]+)",
    re.MULTILINE,
)
"""IPython's and pytest's; Colab makes the path a link, and IPython 8 names a method with its class."""
NOTEBOOK_ARROW = re.compile(r"^-+> ?(?P<line>\d+) ", re.MULTILINE)
"""Before the failing line of a notebook's frame."""
_ERROR = re.compile(
    r"^\s*(?:E\s+)?[\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Failure|Failed)\b:?.*$",
    re.MULTILINE,
)
_CODE_LINE = re.compile(
    r"^\s*(?:>>>|import |from \w[\w.]* import|def |class |@\w)|[=(\[{]\s*$|\w\(.*\)\s*$"
    r"|^\s*\w[\w.]*\s*=\s*\S|^\s{4,}\S"
)
_PATH = re.compile(r"[\w./\\-]+\.(?:py|pyx|cc|cpp|cu|cuh|c|h|hpp|java|go|js|ts|tsx)\b")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+){1,7}")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"`([^`\n]{2,80})`")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_COMPOUND = re.compile(r"[a-z][A-Z]|[A-Z][a-z]+[A-Z]|_")


@dataclass(frozen=True, slots=True)
class CalledFrame:
    """A frame of a traceback in a report: the file as printed, with ``/``, the function and the source line."""

    file: str
    line: int | None
    function: str
    code: str = ""


@dataclass(frozen=True)
class Query:
    """A report, taken apart.

    Attributes:
        report: what it was made from.
        texts: the text of each of `PARTS`.
        frames: of the tracebacks, in the order of the text: the innermost call last.
        paths: paths of source files that the text names, outside of frames; the title's first.
        title_paths: those in the title.
        modules: dotted names in the text.
        only: the words to search for; None for all of them.
    """

    report: Report
    texts: Mapping[str, str]
    frames: tuple[CalledFrame, ...]
    paths: tuple[str, ...]
    title_paths: frozenset[str]
    modules: frozenset[str]
    only: frozenset[str] | None = None

    @cached_property
    def words(self) -> Mapping[str, Counter[str]]:
        """How often each word occurs in each part."""
        return {part: Counter(words(text)) for part, text in self.texts.items()}

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """All different words to search for, in the order of their hashes."""
        found = [word for word in self.words["all"] if self.only is None or word in self.only]
        order = np.argsort(hashes(found), kind="stable")
        return tuple(found[n] for n in order)

    @cached_property
    def hashes(self) -> NDArray[np.uint32]:
        """The hash of each term: sorted."""
        return hashes(self.terms)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """``log(1 + count)`` of each term in each part, shape (terms, parts)."""
        counts = [[self.words[part][term] for part in PARTS] for term in self.terms]
        return np.log1p(np.array(counts, dtype=np.float32).reshape(-1, len(PARTS)))

    @cached_property
    def identifiers(self) -> Mapping[str, frozenset[str]]:
        """Names that look as if they were of the code: compound, quoted, called, or in a frame; by
        the parts ``all``, ``summary``, ``prose`` and ``code``.
        """
        text = self.texts["all"]
        title = self.report.title
        found = {name for name in _IDENTIFIER.findall(text) if _COMPOUND.search(name.strip("_"))}
        for quoted in _QUOTED.findall(text):
            found.update(_IDENTIFIER.findall(quoted))
        found.update(_CALLED.findall(text))
        found.update(part for name in self.modules for part in name.split("."))
        found.update(frame.function for frame in self.frames)
        found.update(n for n in _IDENTIFIER.findall(title) if n[:1].isupper() and len(n) > 3)
        named = {n for n in found if len(n) > 2 and not n.startswith("__") and self._wanted(n)}
        parts = {"summary": title, "prose": self.texts["prose"], "code": self.texts["code"]}
        within = {
            part: named & set(_IDENTIFIER.findall(part_text)) for part, part_text in parts.items()
        }
        return {"all": frozenset(named)} | {part: frozenset(n) for part, n in within.items()}

    @cached_property
    def phrases(self) -> tuple[NDArray[np.uint32], ...]:
        """The hashes of the word trigrams of each line, for lines that have any."""
        lines = dict.fromkeys(line.strip() for line in self.texts["all"].split("\n"))
        wanted = lines if self.only is None else filter(self._wanted, lines)
        found = map(phrases, islice(wanted, MOST_PHRASE_LINES))
        return tuple(line for line in found if len(line))

    def _wanted(self, text: str) -> bool:
        """Whether a text contains a word to search for."""
        held = words(text)
        return bool(held) if self.only is None else not self.only.isdisjoint(held)


def query_of(report: Report) -> Query:
    """Takes a report apart."""
    text = f"{report.title}\n{report.text}"
    prose, code, traceback = _parts(report)
    error = "\n".join(_ERROR.findall(text))
    outside = _FRAME.sub(" ", report.text)
    title_paths = tuple(_slashes(path) for path in _PATH.findall(report.title))
    paths = (*title_paths, *(_slashes(path) for path in _PATH.findall(outside)))
    return Query(
        report=report,
        texts={
            "summary": report.title,
            "all": text,
            "prose": prose,
            "code": code,
            "traceback": traceback,
            "error": error,
        },
        frames=_frames(text),
        paths=tuple(dict.fromkeys(paths)),
        title_paths=frozenset(title_paths),
        modules=frozenset(_DOTTED.findall(text)),
    )


def query_of_diagnosis(found: Diagnosis) -> Query:
    """What a diagnosis gives to search by: its root's text, and its traceback as a report of the
    failure would show it, libraries' frames too, since one of them may be in the repository.
    """
    error = f"{found.exception.type}: {found.exception.message}" if found.exception else ""
    title = error.split("\n", 1)[0] or (found.root.text.strip() if found.root else found.title)
    frames = [_printed(frame) for frame in found.stack]
    traceback = ["Traceback (most recent call last):", *frames] if frames else []
    context = [line for line in found.evidence if line not in error]
    return query_of(Report(title, "\n".join([*context, *traceback, error])))


def _printed(frame: CodeFrame) -> str:
    """A frame as Python prints it; one without a line only names its file."""
    if frame.line is None:
        return f"  {frame.file} {frame.function}"
    return f'  File "{frame.file}", line {frame.line}, in {frame.function}\n    {frame.code}'


def _slashes(path: str) -> str:
    return path.replace("\\", "/")


def _frames(text: str) -> tuple[CalledFrame, ...]:
    found = sorted(
        (match.start(), match)
        for pattern in (_FRAME, _NOTEBOOK_FRAME)
        for match in pattern.finditer(text)
    )
    ends = [*(start for start, _ in found[1:]), len(text)]
    return tuple(
        _frame(match, text[match.end() : end]) for (_, match), end in zip(found, ends, strict=False)
    )


def _frame(match: re.Match[str], below: str) -> CalledFrame:
    """A frame with the source that is printed below it: an arrow marks the failing line, or there is only one."""
    arrow = NOTEBOOK_ARROW.search(below)
    line = match["line"] or (arrow and arrow["line"])
    source = below[arrow.end() :] if arrow else below.partition("\n")[2]
    code = source.partition("\n")[0].strip()
    return CalledFrame(
        _slashes(match["file"]), int(line) if line else None, match["function"] or "", code
    )


def _parts(report: Report) -> tuple[str, str, str]:
    """Prose, code and tracebacks of a report, the title with the prose."""
    prose = [report.title]
    code: list[str] = []
    traceback: list[str] = []
    for block in _FENCE.findall(report.text):
        is_traceback = "Traceback" in block or _FRAME.search(block)
        (traceback if is_traceback else code).append(block)
    inside = False
    for line in _FENCE.sub("\n", report.text).split("\n"):
        if "Traceback (most recent" in line or _FRAME.search(line):
            inside = True
            traceback.append(line)
        elif _ERROR.match(line):
            inside = False
            traceback.append(line)
        elif inside:
            traceback.append(line)
            # A blank line ends what has lost its last line.
            inside = bool(line.strip())
        elif _CODE_LINE.search(line):
            code.append(line)
        else:
            prose.append(line)
    return _joined(prose), _joined(code), _joined(traceback)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines)
