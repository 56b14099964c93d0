"""A corpus: the failures that a study is about, as columns.

A million failures fit into some hundred megabytes, since words are kept once and each failure holds
their numbers. A failure is an attempt of a job; the analyses count the last attempt of each job, as
Zhang et al. (ICSE 2020, Section 3.1) do.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from epochzero.diagnose.fingerprint import is_weak

NOT_A_FAILURE = "not_a_failure"
WORDS = (
    "category", "root_cause", "phase", "retry", "fingerprint", "user", "project", "name", "job",
    "label_category", "label_also", "label_root_cause", "label_phase", "label_retry",
    "label_second", "caught_by",
)  # fmt: skip
"""Columns of words; an empty word says that nothing is known."""
NUMBERS = ("time", "gpu_hours", "seconds", "attempt")
"""Columns of numbers; NaN says that nothing is known."""
MOST_EXAMPLES = 10_000
LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A failure as a source tells of it; what the source does not hold is empty or None.

    Attributes:
        id: unique in its source.
        category, root_cause, phase, retry: words of the taxonomy.
        fingerprint: identity of the failure.
        title, line, fix: what it is, the line that names it, what to do.
        user, project, name, job: whose, of what, and as which job; attempts share their job.
        attempt: counted from 1.
        time: when it failed, in seconds since the epoch.
        seconds: from start to failure.
        gpu_hours: GPUs x hours of the attempt.
        caught_by: the rule of a check that tells of a failure of its category; None where no
            findings are known.
        label: what people say, by the names category, also, root_cause, phase, retry and second (the
            category of another annotator); several words of ``also`` with a space between.
    """

    id: str
    category: str
    root_cause: str = "unknown"
    phase: str = "unknown"
    retry: str = "unknown"
    fingerprint: str = ""
    title: str = ""
    line: str = ""
    fix: str = ""
    user: str = ""
    project: str = ""
    name: str = ""
    job: str = ""
    attempt: int = 1
    time: float | None = None
    seconds: float | None = None
    gpu_hours: float | None = None
    caught_by: str = ""
    label: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureExample:
    """How a failure of a fingerprint looks."""

    title: str
    line: str
    fix: str


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Failures as columns.

    Attributes:
        source: where they come from.
        unit: what an attempt is in this source: a job, or a log.
        codes: numbers of words by column of `WORDS`, each of shape (failures,).
        words: the words that the numbers mean, by column; number 0 is the empty one.
        numbers: by column of `NUMBERS`, each of shape (failures,).
        examples: by fingerprint.
        read: how many records the source held.
        left_out: why others were left out, and how many.
        notes: what of those that were kept could not be used, and how often.
    """

    source: str
    unit: str
    codes: Mapping[str, NDArray[np.int32]] = field(repr=False)
    words: Mapping[str, tuple[str, ...]] = field(repr=False)
    numbers: Mapping[str, NDArray[np.float64]] = field(repr=False)
    examples: Mapping[str, FailureExample] = field(repr=False)
    read: int
    left_out: Mapping[str, int]
    notes: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.codes["category"])

    def where(self, chosen: NDArray[np.bool_]) -> Corpus:
        """Those failures for which ``chosen`` is true."""
        return replace(
            self,
            codes={name: codes[chosen] for name, codes in self.codes.items()},
            numbers={name: values[chosen] for name, values in self.numbers.items()},
        )

    def counts(self, column: str) -> dict[str, int]:
        """How often each known word of a column comes, the most frequent first."""
        found = np.bincount(self.codes[column], minlength=len(self.words[column]))
        pairs = ((w, int(n)) for w, n in zip(self.words[column], found, strict=True) if w and n)
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def sums(self, column: str, number: str) -> dict[str, float]:
        """The sum of a number by the words of a column; what is not known adds nothing."""
        weights = np.nan_to_num(self.numbers[number])
        found = np.bincount(self.codes[column], weights, minlength=len(self.words[column]))
        return {w: float(n) for w, n in zip(self.words[column], found, strict=True) if w}

    def is_word(self, column: str, word: str) -> NDArray[np.bool_]:
        """Where a word stands in a column."""
        words = self.words[column]
        code = words.index(word) if word in words else -1
        return np.asarray(self.codes[column] == code)

    def knows(self, column: str) -> NDArray[np.bool_]:
        """Where something is known in a column."""
        if column in self.numbers:
            return ~np.isnan(self.numbers[column])
        return np.asarray(self.codes[column] != 0)

    def texts(self, column: str) -> list[str]:
        """The words of a column, one a failure."""
        words = self.words[column]
        return [words[code] for code in self.codes[column].tolist()]

    def failures(self) -> Corpus:
        """The last attempt of each job, without what was no failure."""
        return self.where(self._is_last() & self._failed())

    def attempts_of_failed(self) -> Corpus:
        """All failed attempts of the jobs of `failures`."""
        jobs = self.codes["job"]
        failed = np.zeros(len(self.words["job"]), bool)
        failed[jobs[self._is_last() & self._failed()]] = True
        return self.where(failed[jobs] & self._failed())

    def _failed(self) -> NDArray[np.bool_]:
        return ~self.is_word("category", NOT_A_FAILURE)

    def _is_last(self) -> NDArray[np.bool_]:
        """Which attempts are the last of their job; a failure without a job is one by itself."""
        jobs, attempts = self.codes["job"], self.numbers["attempt"]
        last = np.zeros(len(self.words["job"]))
        np.maximum.at(last, jobs, attempts)
        return np.asarray((jobs == 0) | (attempts == last[jobs]))


class CorpusBuilder:
    """Takes failures one by one, each identity once.

    Args:
        source: where they come from.
        unit: what they are.
    """

    def __init__(self, source: str, unit: str = "failures") -> None:
        self._source = source
        self._unit = unit
        self._codes = {name: array("i") for name in WORDS}
        self._numbers = {name: array("d") for name in NUMBERS}
        self._words: dict[str, dict[str, int]] = {name: {"": 0} for name in WORDS}
        self._seen: set[bytes] = set()
        self._times_seen: Counter[int] = Counter()
        self._examples: dict[str, FailureExample] = {}
        self._left_out: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self.read = 0

    def add(self, case: FailureCase) -> None:
        """A failure; one whose identity was read before is left out, and counted.

        A weak fingerprint is dropped: it would count unrelated failures as one.
        """
        identity = blake2b(case.id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if identity in self._seen:
            self.leave_out("has the id of one before it")
            return
        self.read += 1
        self._seen.add(identity)
        if is_weak(case.fingerprint):
            case = replace(case, fingerprint="")
        for name in WORDS:
            if name.startswith("label_"):
                word = case.label.get(name.removeprefix("label_"), "")
            else:
                word = getattr(case, name)
            known = self._words[name]
            self._codes[name].append(known.setdefault(word, len(known)))
        for name in NUMBERS:
            value = getattr(case, name)
            self._numbers[name].append(float("nan") if value is None else value)
        self._keep_example(case)

    def leave_out(self, why: str) -> None:
        """A record that is no use."""
        self.read += 1
        self._left_out[why] += 1

    def note(self, what: str) -> None:
        """Something in a record that cannot be used, though the record can."""
        self._notes[what] += 1

    def built(self) -> Corpus:
        """The corpus of all that was added."""
        return Corpus(
            source=self._source,
            unit=self._unit,
            codes={name: np.array(codes, np.int32) for name, codes in self._codes.items()},
            words={name: tuple(words) for name, words in self._words.items()},
            numbers={name: np.array(values, float) for name, values in self._numbers.items()},
            examples=self._examples,
            read=self.read,
            left_out=dict(self._left_out),
            notes=dict(self._notes),
        )

    def _keep_example(self, case: FailureCase) -> None:
        """Of the first fingerprints, later of those that come again: the frequent ones are shown."""
        if not case.fingerprint or case.fingerprint in self._examples:
            return
        code = self._words["fingerprint"][case.fingerprint]
        self._times_seen[code] += 1
        if len(self._examples) < MOST_EXAMPLES or self._times_seen[code] > 1:
            line = case.line if len(case.line) <= LONGEST_LINE else f"{case.line[:LONGEST_LINE]}…"
            self._examples[case.fingerprint] = FailureExample(case.title, line, case.fix)
