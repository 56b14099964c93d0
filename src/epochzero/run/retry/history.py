"""What earlier attempts of all jobs of one home show about a failure.

One line is appended to ``attempts.jsonl`` for each attempt that ended. Jobs on all nodes that share the
home share this history, and an attempt that a scheduler started again knows the attempts before it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from itertools import takewhile
from pathlib import Path

from epochzero.diagnose.fingerprint import is_weak

NAME = "attempts.jsonl"
_LARGEST = 16 << 20
"""Bytes; a larger file becomes ``attempts.jsonl.1`` and is no longer read."""
_READ = 4 << 20
"""Bytes from the end: about 15,000 attempts."""
_MANY_RETRIES = 3
_MANY_NEIGHBOURS = 3
_LONG_AGO_S = 90 * 86_400.0
_AT_THE_TIME_S = 900.0
_LARGEST_SCRIPT = 1 << 20


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt in the history.

    Attributes:
        time: when it ended, in seconds since the epoch.
        job: its identity.
        program: see `program_of`.
        host: where it ran.
        passed: it ended with exit code 0.
        fingerprint: of its failure; empty if it passed or its failure has no identity.
        storage: the network file system with the files of its failure (`shared_storage`); empty if on none.
        directory: its working directory.
        code: see `code_of`.
        resource: what of its environment its failure is about (`shared_resource`); empty if nothing.
        step: the last that it reported; 0 for none.
    """

    time: float
    job: str
    program: str
    host: str
    passed: bool
    fingerprint: str = ""
    storage: str = ""
    directory: str = ""
    step: int = 0
    code: str = ""
    resource: str = ""

    def failed_near(self, other: EndedAttempt) -> bool:
        """Whether this is a job with other code that failed there and then because of the same resource.

        Two jobs that fail at the same time have nothing in common by that alone. Jobs with the same code or of the same
        directory share their defects, and a person starts a job again and again until it runs.
        """
        return (
            bool(self.resource)
            and self.resource == other.resource
            and self.job != other.job
            and self.directory != other.directory
            and self.code != other.code
            and (self.host == other.host or (bool(self.storage) and self.storage == other.storage))
            and abs(self.time - other.time) < _AT_THE_TIME_S
        )


@dataclass(frozen=True, slots=True)
class Precedents:
    """What the history knows about a failure.

    Attributes:
        passed: retries of this failure after which the job passed or failed in another way.
        repeated: retries of it that failed in the same way.
        neighbours: other jobs that failed within a quarter of an hour because of the same resource of the host or network
            file system (`EndedAttempt.failed_near`).
        completed: whether the same program has run to its end before.
        earlier: attempts of the same job right before this one that failed in the same way and came as far.
    """

    passed: int = 0
    repeated: int = 0
    neighbours: int = 0
    completed: bool = False
    earlier: int = 0

    @property
    def evidence(self) -> frozenset[str]:
        """The facts of `policy.EVIDENCE` that follow."""
        facts = {
            "passed_before": self.passed > 0,
            "never_passed": self.passed == 0 and self.repeated >= _MANY_RETRIES,
            "neighbours_failed": self.neighbours > 0,
            "many_neighbours_failed": self.neighbours >= _MANY_NEIGHBOURS,
            "completed_before": self.completed,
        }
        return frozenset(fact for fact, holds in facts.items() if holds)


NO_PRECEDENTS = Precedents()


def program_of(command: Sequence[str], folder: Path) -> str:
    """Identity of what a command runs: its words, and the content of the files among them."""
    parts = (word.encode("utf-8", "surrogateescape") + b"\0" for word in command)
    contents = (_script(folder, word) for word in command)
    return _digest(part for pair in zip(parts, contents, strict=True) for part in pair)


def code_of(command: Sequence[str], folder: Path) -> str:
    """Identity of the code that a command runs, whatever its options and directory: the scripts in it, else its words
    before the first option.
    """
    scripts = [content for word in command if (content := _script(folder, word))]
    words = takewhile(lambda word: not word.startswith("--"), command)
    return _digest(scripts or [word.encode("utf-8", "surrogateescape") + b"\0" for word in words])


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _script(folder: Path, word: str) -> bytes:
    """The content of the file that a word names; empty if it names none, or one too large for a script."""
    with suppress(OSError, ValueError):
        file = folder / word
        if file.is_file() and file.stat().st_size <= _LARGEST_SCRIPT:
            return file.read_bytes()
    return b""


def remember(home: Path, attempt: EndedAttempt) -> Precedents:
    """What the history knows about an attempt that ended, which then becomes part of it."""
    known = NO_PRECEDENTS if attempt.passed else precedents(home, attempt)
    _append(home, attempt)
    return known


def _append(home: Path, attempt: EndedAttempt) -> None:
    """Adds an attempt. A home that cannot be written has no history: the job matters more."""
    line = json.dumps(asdict(attempt), ensure_ascii=True) + "\n"
    file = home / NAME
    with suppress(OSError):
        if file.exists() and file.stat().st_size > _LARGEST:
            os.replace(file, file.with_name(f"{NAME}.1"))
        # One write of a short line in append mode is not mixed with those of other processes.
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def precedents(home: Path, failed: EndedAttempt) -> Precedents:
    """What the attempts of a home show about this failure.

    Args:
        home: of the runs.
        failed: the attempt, which is not in the history yet.
    """
    attempts = [a for a in _read(home) if failed.time - a.time < _LONG_AGO_S]
    passed, repeated = _retries(failed.fingerprint, attempts)
    return Precedents(
        passed=passed,
        repeated=repeated,
        neighbours=len({a.job for a in attempts if a.failed_near(failed)}),
        completed=any(a.passed and a.program == failed.program for a in attempts),
        earlier=_earlier(failed, attempts),
    )


def _earlier(failed: EndedAttempt, attempts: Sequence[EndedAttempt]) -> int:
    """See `Precedents`. Those of other processes count: a scheduler may start a job again itself."""
    if not failed.fingerprint or is_weak(failed.fingerprint):
        return 0
    own = [attempt for attempt in attempts if attempt.job == failed.job]
    same = takewhile(
        lambda earlier: earlier.fingerprint == failed.fingerprint and earlier.step >= failed.step,
        reversed(own),
    )
    return len(list(same))


def _retries(fingerprint: str, attempts: Iterable[EndedAttempt]) -> tuple[int, int]:
    """How many retries of a failure passed, and how many did not."""
    if not fingerprint or is_weak(fingerprint):
        return 0, 0
    passed = repeated = 0
    last: dict[str, str] = {}
    for attempt in attempts:
        if last.get(attempt.job) == fingerprint:
            if attempt.fingerprint == fingerprint:
                repeated += 1
            elif attempt.passed or not is_weak(attempt.fingerprint):
                passed += 1
        last[attempt.job] = attempt.fingerprint
    return passed, repeated


def _read(home: Path) -> Sequence[EndedAttempt]:
    """The attempts, oldest first; invalid lines are skipped."""
    try:
        with (home / NAME).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _READ))
            lines = file.read().splitlines()[size > _READ :]
    except OSError:
        return ()
    attempts = []
    for line in lines:
        with suppress(ValueError, TypeError):
            attempts.append(_attempt(json.loads(line)))
    return attempts


def _attempt(raw: object) -> EndedAttempt:
    if not isinstance(raw, dict):
        raise TypeError("not an object")
    known = {f.name for f in fields(EndedAttempt)}  # Other versions write the history, too.
    attempt = EndedAttempt(**{name: value for name, value in raw.items() if name in known})
    values = asdict(attempt)
    types = {"time": int | float, "passed": bool, "step": int}
    if not all(isinstance(value, types.get(name, str)) for name, value in values.items()):
        raise TypeError("a field of another type")
    return attempt
