"""``FAULT[=VALUE]@WHEN[:OPTION=VALUE]``, as a person writes a fault.

>>> fault = parsed("disk-full@step:200:for=10s")
>>> fault.name, fault.step, fault.lasts
('disk-full', 200, 10.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from epochzero.errors import InputError, suggestion
from epochzero.run.inject.catalog import KINDS, Kind

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 366 * 86400.0
_MOST = 10**12
_FORM = "FAULT[=VALUE]@step:N or FAULT[=VALUE]@TIME, such as kill-rank=1@step:200 or disk-full@30s:for=10s"


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A planned fault.

    Attributes:
        text: as requested.
        name: of the fault, a key of `KINDS`.
        step: the fault occurs at the start of this step, counted from 1; None if it occurs at a time.
        after: seconds from the start of the attempt; None if it occurs at a step.
        rank: rank that is killed or gets no memory.
        delay: additional seconds for each read.
        word: variant of the fault: ``fail`` or ``hang``.
        lasts: duration in seconds; None for the rest of the attempt.
        notice: seconds between SIGTERM and SIGKILL.
    """

    text: str
    name: str
    step: int | None = None
    after: float | None = None
    rank: int = 0
    delay: float = 0.0
    word: str = ""
    lasts: float | None = None
    notice: float = 0.0

    @property
    def kind(self) -> Kind:
        """Catalogue entry of this fault."""
        return KINDS[self.name]


def parsed(text: str) -> InjectedFault:
    """Parse a fault.

    Raises:
        InputError: the text is invalid; the message lists what is valid.
    """
    head, at, tail = text.strip().partition("@")
    name, equals, value = head.partition("=")
    if name not in KINDS:
        raise InputError(f"{text}: unknown fault {name!r}; {_nearest(name, KINDS)}")
    kind = KINDS[name]
    if not at or not tail:
        raise InputError(f"{text}: missing time; write {_FORM}")
    words = tail.split(":")
    step = after = None
    if words[0] == "step":
        step = _count(text, "step", words[1] if len(words) > 1 else "", least=1)
        words = words[2:]
    elif not kind.times:
        raise InputError(f"{text}: {name} can be injected only at a step; write {name}@step:N")
    else:
        after = _duration(text, words.pop(0))
    options = _options(text, kind, words)
    value = _value(text, kind, value if equals else kind.default, given=bool(equals))
    return InjectedFault(
        text.strip(),
        name,
        step,
        after,
        rank=_count(text, "rank", value, least=0) if kind.value == "rank" else 0,
        delay=_duration(text, value) if kind.value == "duration" else 0.0,
        word=value if kind.value == "word" else "",
        lasts=options.get("for"),
        notice=options.get("notice") or 0.0,
    )


def parsed_all(texts: Iterable[str]) -> tuple[InjectedFault, ...]:
    """Parse the faults of one job.

    Raises:
        InputError: one is invalid, or two contradict each other.
    """
    faults = tuple(parsed(text) for text in texts)
    for number, fault in enumerate(faults):
        for other in faults[:number]:
            _check_both(other, fault)
    return faults


def _check_both(left: InjectedFault, right: InjectedFault) -> None:
    if left.name != right.name or left.rank != right.rank:
        return
    if (left.step, left.after) == (right.step, right.after):
        raise InputError(
            f"{left.text} and {right.text} are the same fault at the same time; remove one of them"
        )
    first, second = sorted((left, right), key=_moment)
    both = f"{first.text} and {second.text}"
    if first.name == "preempt":
        raise InputError(
            f"{both}: a job can be preempted only once per attempt; remove one of them"
        )
    same_clock = (first.step is None) == (second.step is None)
    if first.kind.inside and first.name != "oom" and same_clock and first.lasts is None:
        raise InputError(
            f"{both}: the first has no end; limit it, for example {first.text}:for=10s"
        )


def _moment(fault: InjectedFault) -> float:
    return fault.step if fault.step is not None else fault.after or 0.0


def _value(text: str, kind: Kind, value: str, *, given: bool) -> str:
    """Parse the part after ``=``, or return the default."""
    name = text.strip().partition("@")[0].partition("=")[0]
    if given and not kind.value:
        raise InputError(f"{text}: {name} takes no value; write {name}@...")
    if kind.value and not value:
        example = {"rank": "1", "duration": "200ms"}.get(kind.value, kind.default)
        raise InputError(f"{text}: {name} requires a value; write {name}={example}@...")
    if kind.words and value not in kind.words:
        raise InputError(f"{text}: {name} cannot {value!r}; {_nearest(value, kind.words)}")
    return value


def _options(text: str, kind: Kind, words: Sequence[str]) -> dict[str, float | None]:
    options = dict(kind.options)
    given: set[str] = set()
    for word in words:
        name, equals, value = word.partition("=")
        if name not in options:
            known = _nearest(name, options) if options else "this fault has no options"
            raise InputError(f"{text}: {name!r} is not an option of this fault; {known}")
        if name in given:
            raise InputError(f"{text}: {name} is given twice")
        if not equals:
            raise InputError(f"{text}: {name} requires a duration; write {name}=10s")
        given.add(name)
        options[name] = _duration(text, value)
    return options


def _count(text: str, what: str, word: str, *, least: int) -> int:
    if word.isascii() and word.isdigit() and least <= int(word[:20]) <= _MOST:
        return int(word)
    raise InputError(f"{text}: {word!r} is not a {what}; write an integer of at least {least}")


def _duration(text: str, word: str) -> float:
    """Parse a duration in seconds; a unit is required."""
    number = word.rstrip("hmins")
    unit = _UNITS.get(word[len(number) :])
    if unit is not None and number.isascii() and number.replace(".", "", 1).isdigit():
        with suppress(ValueError, OverflowError):
            if (seconds := float(number) * unit) <= _LONGEST_S:
                return seconds
    raise InputError(f"{text}: {word!r} is not a time; write 200ms, 30s, 5m or 1h, or step:N")


def _nearest(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return suggestion(word, names, f"choose one of {', '.join(names)}")
