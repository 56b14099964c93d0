"""Decides whether a printed exception terminated its process or was handled by the program.

Python prints a traceback from the frame that catches an exception down to the one that raises it.
A traceback that starts at module level was therefore not caught (or caught by the last line of the
program), while a traceback that starts inside a function was printed by code that then continued.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from epochzero.logs.traceback import Frame

_TOP = frozenset({"<module>", "_run_module_as_main", ""})
"""Web pages drop ``<module>``, which looks like a tag to them."""
_INTERACTIVE = re.compile(r"^(?:<ipython|<stdin>|<console>|Cell In|Input In|In ?\[)|ipykernel_\d+")
# What the program does, not what an error message advises ("try again").
_SET_ASIDE = re.compile(
    r"(?i)\[skip\]|\b(?:skipp(?:ing|ed)|ignoring|retrying|(?:trying|will try) again|falling back|falls back"
    r"|continuing|proceeding|using (?:the )?default|will be disabled|won't convert|non-fatal"
    r"|(?:training|evaluation|job|run|program|process|loop|execution|work) (?:continues|proceeds|goes on))\b"
)
_TRIES = re.compile(
    r"(?i)\b(?:attempt|retry|trial|try) ?#?(?P<made>\d{1,4}) ?(?:of|/) ?(?P<most>\d{1,4})\b"
)
_GAVE_UP = re.compile(
    r"(?i)giving up|gave up|exhausted|no (?:more )?(?:retries|attempts)|abort|exiting|cannot|can't"
    r"|could not (?:continue|proceed|recover)|unable to|not (?:skip|ignor|continu|retry)|\bto continue"
)
_SPEAKER = re.compile(
    r"(?i)^\W{0,4}(?:q|a|question|answer|prompt|predict(?:ion|ed)|reference|response|completion"
    r"|generat(?:ed|ion)(?: text)?|hypothesis|caption|instruction|query|passage|assistant"
    r"|(?:ground[ _-]?truth|gold)(?: answer)?)(?:[ _#]?\d{1,6})?\W{0,2}[:=>]"
)
_WORD = re.compile(r"[a-z]{4,}")
_COMMON = frozenset(
    {"cannot", "could", "error", "errors", "exception", "failed", "from", "warning", "will", "with"}
)
_FINISHED = re.compile(
    r"(?i)^\W*(?:[\w ]{0,30}\b)?(?:done|finished|complete[d]?|saved|success(?:fully)?)\b"
)


def is_uncaught(frames: Sequence[Frame]) -> bool:
    """Whether a stack (outermost call first) starts at the top of a program, which then exits.

    An interactive session survives its exceptions, so its cells do not count. What is typed into
    Python has one line at a time; a program that is read from standard input has more.
    """
    if not frames or frames[0].function not in _TOP:
        return False
    piped = frames[0].file == "<stdin>" and (frames[0].line or 0) > 1
    return piped or _INTERACTIVE.search(frames[0].file) is None


def runs_in_helper_thread(frames: Sequence[Frame]) -> bool:
    """Whether a stack belongs to a thread, whose exception does not terminate the process."""
    return bool(frames) and frames[0].function in ("_bootstrap", "_bootstrap_inner") and (
        frames[0].file.endswith("threading.py")
    )  # fmt: skip


_REQUEST = re.compile(
    r"^(?:run_asgi|run_wsgi|wsgi_app|handle_one_request|_?handle_request|full_dispatch_request|_call_behavior)$"
)
"""Functions with which web and RPC servers call the code that answers one request."""
_REFUSAL = re.compile(r"HTTP/\d(?:\.\d)?\" [45]\d\d\b")


def answers_request(frames: Sequence[Frame]) -> bool:
    """Whether a stack belongs to one request of a server, which answers it with an error and serves the next."""
    return any(_REQUEST.match(frame.function) for frame in frames)


def is_refusal(text: str) -> bool:
    """Whether a server reports that it answered a request with an error."""
    return _REFUSAL.search(text) is not None


def is_set_aside(text: str, failed: str | None = None) -> bool:
    """Whether a line next to an exception reports that the program continues without the failed part.

    Args:
        text: the line.
        failed: message and location of the exception. If given, the line must refer to it: it names
            no other subject before it states what the program does.
    """
    if _GAVE_UP.search(text):
        return False
    tries = _TRIES.search(text)
    if tries and int(tries["made"]) < int(tries["most"]):
        return True
    found = _SET_ASIDE.search(text)
    if found is None:
        return False
    subject = _words(text[: found.start()])
    return failed is None or not subject or not subject.isdisjoint(_words(failed))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _COMMON


def is_quoted(text: str) -> bool:
    """Whether a line shows text of a model or data set, which states nothing about the job."""
    return _SPEAKER.match(text) is not None


def is_finished(text: str) -> bool:
    """Whether a line reports that the job's work is done."""
    return _FINISHED.match(text) is not None
