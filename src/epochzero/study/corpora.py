"""A corpus: the failures of a study, stored as columns.

A million failures fit into a few hundred megabytes, since each distinct word is stored once and failures hold
indices. A failure is an attempt of a job; the analyses count the last attempt of each job, as Zhang et al.
(ICSE 2020, Section 3.1) do.
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
WORDS = tuple(
    """
    category root_cause phase retry fingerprint user project name job label_category label_also
    label_root_cause label_phase label_retry label_second caught_by
    """.split()
)
"""Columns of words; an empty word means unknown."""
NUMBERS = ("time", "gpu_hours", "seconds", "attempt")
"""Columns of numbers; NaN means unknown."""
MOST_EXAMPLES = 10_000
LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A failure as given by a source; what the source does not contain is empty or None.

    Attributes:
        id: unique in its source.
        category, root_cause, phase, retry: words of the taxonomy.
        fingerprint: identity of the failure.
        title, line, fix: title, root line, and advice.
        user, project, name, job: owner, project, name and id of the job; attempts share their job.
        attempt: counted from 1.
        time: of the failure, in seconds since the epoch.
        seconds: from start to failure.
        gpu_hours: GPUs x hours of the attempt.
        caught_by: rule of a check that predicts a failure of its category; None if no findings are known.
        label: labels by people, by the names category, also, root_cause, phase, retry and second (the category of
            another annotator); ``also`` may hold several words, separated by spaces.
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
    """An example of the failures of a fingerprint."""

    title: str
    line: str
    fix: str


@dataclass(frozen=True, slots=True, eq=False)
class FailureCorpus:
    """Failures as columns.

    Attributes:
        source: name of the source.
        unit: what an attempt is in this source: a job, or a log.
        codes: indices of words by column of `WORDS`, each of shape (failures,).
        words: words by column; index 0 is the empty word.
        numbers: by column of `NUMBERS`, each of shape (failures,).
        examples: by fingerprint.
        read: number of records in the source.
        left_out: number of excluded records by reason.
        notes: number of unusable fields in included records by reason.
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

    def where(self, chosen: NDArray[np.bool_]) -> FailureCorpus:
        """Return the failures for which ``chosen`` is true."""
        return replace(
            self,
            codes={name: codes[chosen] for name, codes in self.codes.items()},
            numbers={name: values[chosen] for name, values in self.numbers.items()},
        )

    def counts(self, column: str) -> dict[str, int]:
        """Return the frequency of each known word of a column, most frequent first."""
        found = np.bincount(self.codes[column], minlength=len(self.words[column]))
        pairs = ((w, int(n)) for w, n in zip(self.words[column], found, strict=True) if w and n)
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def sums(self, column: str, number: str) -> dict[str, float]:
        """Return the sums of a number by word of a column; unknown values count 0."""
        weights = np.nan_to_num(self.numbers[number])
        found = np.bincount(self.codes[column], weights, minlength=len(self.words[column]))
        return {w: float(n) for w, n in zip(self.words[column], found, strict=True) if w}

    def is_word(self, column: str, word: str) -> NDArray[np.bool_]:
        """Return where a column has a word."""
        words = self.words[column]
        code = words.index(word) if word in words else -1
        return np.asarray(self.codes[column] == code)

    def knows(self, column: str) -> NDArray[np.bool_]:
        """Return where a column is known."""
        if column in self.numbers:
            return ~np.isnan(self.numbers[column])
        return np.asarray(self.codes[column] != 0)

    def texts(self, column: str) -> list[str]:
        """Return the words of a column, one per failure."""
        words = self.words[column]
        return [words[code] for code in self.codes[column].tolist()]

    def failures(self) -> FailureCorpus:
        """Return the last attempt of each job, without logs that show no failure."""
        return self.where(self._is_last() & self._failed())

    def attempts_of_failed(self) -> FailureCorpus:
        """Return all failed attempts of the jobs of `failures`."""
        jobs = self.codes["job"]
        failed = np.zeros(len(self.words["job"]), bool)
        failed[jobs[self._is_last() & self._failed()]] = True
        return self.where(failed[jobs] & self._failed())

    def _failed(self) -> NDArray[np.bool_]:
        return ~self.is_word("category", NOT_A_FAILURE)

    def _is_last(self) -> NDArray[np.bool_]:
        """Return which attempts are the last of their job; a failure without a job is its own job."""
        jobs, attempts = self.codes["job"], self.numbers["attempt"]
        last = np.zeros(len(self.words["job"]))
        np.maximum.at(last, jobs, attempts)
        return np.asarray((jobs == 0) | (attempts == last[jobs]))


class CorpusBuilder:
    """Collects failures; each identity counts once.

    Args:
        source: name of the source.
        unit: what an attempt is.
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
        """Add a failure; one whose identity was already added is excluded and counted.

        A weak fingerprint is dropped: it would count unrelated failures as one.
        """
        identity = blake2b(case.id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if identity in self._seen:
            self.leave_out("has the id of an earlier record")
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
        """Count a record that cannot be used."""
        self.read += 1
        self._left_out[why] += 1

    def note(self, what: str) -> None:
        """Count an unusable field of a usable record."""
        self._notes[what] += 1

    def built(self) -> FailureCorpus:
        """Return the corpus of all added failures."""
        return FailureCorpus(
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
        """Store an example for the first fingerprints, later only for repeated ones: frequent ones are shown."""
        if not case.fingerprint or case.fingerprint in self._examples:
            return
        code = self._words["fingerprint"][case.fingerprint]
        self._times_seen[code] += 1
        if len(self._examples) < MOST_EXAMPLES or self._times_seen[code] > 1:
            line = case.line if len(case.line) <= LONGEST_LINE else f"{case.line[:LONGEST_LINE]}…"
            self._examples[case.fingerprint] = FailureExample(case.title, line, case.fix)
