"""How far a job is, read from what it prints: step, epoch, loss, the last checkpoint.

Formats are data: ``progress.toml``. Of much output only the newest is read, so that the cost stays
small; every line about a checkpoint is read all the same.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from epochzero.run.observers.losses import LossWatch
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.identity import PROGRESS_FILE
from epochzero.run.records.model import JobProgress, Record

_MOST_LINES = 200
_MOST_BYTES = 1 << 15
"""What is read of one second's output, and of one piece of it."""
_LONGEST_LINE = 1000
_LINE_END = re.compile(rb"[\r\n]+")
_SAVES = (b"aving", b"aved", b"wrote", b"riting", b"ritten", b"tored")
_NUMBERS = {
    "{int}": r"\d{1,12}",
    "{number}": r"\d{1,9}(?:\.\d{1,20})?",
    "{value}": r"(?:[-+]?\d{1,12}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?|nan|-?inf)",
}
_WHOLE = frozenset(("step", "steps"))


@dataclass(frozen=True, slots=True)
class ProgressFormat:
    """One way to print progress.

    Attributes:
        name: of the program that prints it so.
        pattern: its groups are fields of `JobProgress`.
        unless: a line that this matches, too, tells nothing.
        needs: one of these stands in each line that it matches, in lower case.
        examples: lines with what they report.
        leaves: lines that report nothing.
    """

    name: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    needs: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    leaves: tuple[str, ...]

    def reported(self, line: str, lowered: str) -> dict[str, Any]:
        """What a line tells in this format."""
        if not any(need in lowered for need in self.needs):
            return {}
        found = self.pattern.search(line)
        if found is None or (self.unless is not None and self.unless.search(line)):
            return {}
        return {name: _value(name, text) for name, text in found.groupdict().items() if text}


@cache
def formats() -> tuple[ProgressFormat, ...]:
    """All that are known."""
    from importlib.resources import files  # Takes as long to load as they do.

    data = tomllib.loads(
        files("epochzero.run.observers").joinpath("progress.toml").read_text("utf-8")
    )
    return tuple(
        ProgressFormat(
            name,
            _compiled(entry["pattern"]),
            re.compile(entry["unless"]) if "unless" in entry else None,
            tuple(entry["needs"]),
            tuple(entry["examples"]),
            tuple(entry["leaves"]),
        )
        for name, entry in data.items()
    )


def reported(line: str) -> dict[str, Any]:
    """What a line tells of progress: fields of `JobProgress`; of a long line its beginning is read."""
    # Loaded with the first line that is read: a job's start does not wait for it.
    from epochzero.logs.prefix import strip_ansi

    line = strip_ansi(line[:_LONGEST_LINE]).rstrip()
    lowered = line.lower()
    found: dict[str, Any] = {}
    for format in formats():
        found = {**format.reported(line, lowered), **found}
    return found


def progressed(before: JobProgress | None, after: JobProgress | None) -> bool:
    """Whether an attempt came further than the one before it.

    Epochs are compared, then steps, as far as both report them; where they share no count, whether
    there is a checkpoint of another name. To come as far as before is no progress.
    """
    if after is None:
        return False
    if before is None:
        return bool(after.epoch or after.step or after.checkpoint)
    counts = ((before.epoch, after.epoch), (before.step, after.step))
    shared = [(old, new) for old, new in counts if old is not None and new is not None]
    for old, new in shared:
        if old != new:
            return new > old
    return not shared and bool(after.checkpoint) and after.checkpoint != before.checkpoint


class ProgressWatcher(Watcher):
    """A watcher that leaves a `JobProgress` when the job has come further, once a second at most."""

    def __init__(self) -> None:
        self._begun: dict[str, bytes] = {}
        self._lines: list[bytes] = []
        self._now: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}
        self._loss = LossWatch()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Holds the newest lines until the next second, and all that report a checkpoint."""
        data = self._begun.pop(name, b"") + data
        older, data = data[:-_MOST_BYTES], data[-_MOST_BYTES:]
        if any(word in older for word in _SAVES):
            lines = _LINE_END.split(older)
            self._read([line for line in lines if any(word in line for word in _SAVES)])
        *lines, rest = _LINE_END.split(data)
        # A line of any length is known by its beginning.
        self._begun[name] = rest[:_LONGEST_LINE]
        self._lines = [*self._lines, *lines][-_MOST_LINES:]
        return ()

    def tick(self) -> Iterable[Record]:
        """What was read in the last second; nothing where the job itself says it, and better."""
        lines, self._lines = self._lines, []
        self._read(lines)
        if self._now == self._kept or (self._folder / PROGRESS_FILE).exists():
            return ()
        self._kept = dict(self._now)
        reported = JobProgress(*self._clock.now(), **self._kept)
        return (*self._loss.look(reported.loss, self._clock), reported)

    def ended(self) -> Iterable[Record]:
        """The last words, which no line end need follow."""
        self._lines += self._begun.values()
        return self.tick()

    def _read(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            found = reported(line[:_LONGEST_LINE].decode("utf-8", "replace"))
            if "epoch" in found and found["epoch"] != self._now.get("epoch"):
                # Many programs restart the count of steps in each epoch.
                found = {"step": None, **found}
            self._now.update(found)


def _compiled(pattern: str) -> re.Pattern[str]:
    for name, numbers in _NUMBERS.items():
        pattern = pattern.replace(name, numbers)
    return re.compile(pattern)


def _value(name: str, text: str) -> int | float | str:
    if name == "checkpoint":
        return text.rstrip(".")
    return int(text) if name in _WHOLE else float(text)
