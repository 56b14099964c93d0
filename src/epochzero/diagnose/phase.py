"""In which phase of a job a failure happened (Zhang et al., ICSE 2020, Section 4.4)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame

# What a failure is about, where its stack says nothing of the phase.
_AT_START = frozenset({"library_not_found", "syntax_error"})
_OF_DATA = frozenset({"corrupt_data", "unexpected_encoding"})


def phase_of(frames: Sequence[Frame], category: str, *, trained: bool) -> str:
    """The phase that a stack and the log before it point to.

    Args:
        frames: outermost call first.
        category: of the failure.
        trained: the log shows steps or epochs before the failure.
    """
    if category in _AT_START and not trained:
        return "initialization"
    own = [frame for frame in reversed(frames) if is_user_frame(frame)]
    other = [frame for frame in reversed(frames) if not is_user_frame(frame)]
    phase = _by_names(own) or _by_names(other)
    if (
        phase == "training"
        and not trained
        and not any(_LOOP.search(f.function) or _LOOP_CODE.search(f.code) for f in frames)
    ):
        # Nothing was trained yet, and no training loop is on the stack.
        phase = ""
    if phase:
        return phase
    if trained:
        return "training"
    return "preprocessing" if category in _OF_DATA else "initialization"


_LOOP = re.compile(r"train|fit|backward|learn|epoch|step|loss")
_LOOP_CODE = re.compile(r"\bloss\w* = |criterion\(|\.backward\(|\.step\(|\bepoch\b")
_Hint = tuple[str, re.Pattern[str], re.Pattern[str] | None, re.Pattern[str] | None]


def _by_names(frames: Iterable[Frame]) -> str:
    for frame in frames:
        for phase, function, file, code in _hints():
            named = function.search(frame.function) or (file and file.search(frame.file))
            if named or (code and code.search(frame.code)):
                return phase
    return ""


@cache
def _hints() -> tuple[_Hint, ...]:
    text = files(__package__).joinpath("phases.toml").read_text(encoding="utf-8")
    return tuple(
        (
            raw["phase"],
            re.compile(raw["function"]),
            re.compile(raw["file"]) if "file" in raw else None,
            re.compile(raw["code"]) if "code" in raw else None,
        )
        for raw in tomllib.loads(text)["hint"]
    )
