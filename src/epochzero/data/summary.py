"""Summaries of columns in one pass and bounded memory.

Counts, extremes, means and standard deviations are exact. Quantiles come from a uniform sample of
10,000 values: by the inequality of Dvoretzky, Kiefer and Wolfowitz (Massart, Ann. Probab. 18, 1990)
their ranks are off by at most 1.4 % of the values with a probability of 95 %.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import numpy as np

from epochzero.data.model import LEVELS, ColumnProfile, Kind, Numbers

SAMPLE = 10_000
# Values that are counted one by one; a column with more different ones is no category.
MOST_DIFFERENT = 10_000
MOST_CATEGORIES = 1000
LONGEST_CATEGORY = 64
# A category is named in the profile when it comes so often, so that no person's value is in it.
FEWEST = 5
# Whole numbers with no more different values are counted one by one, as classes are.
MOST_WHOLE = 100
# A column is of the kind of so many of its values; the others are dirt.
DOMINANT = 0.99
ALPHABET = 100
ALPHABET_TEXTS = 50
ALPHABET_LENGTH = 1000
# The first and the last second of Python's dates, from 1970.
PYTHON_DATES = (-62_135_596_800, 253_402_300_799)
# What stands for nothing in files that have only texts, as pandas reads them.
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None")
)

Floats = np.ndarray[Any, np.dtype[np.float64]]
# The records of each class, by their indices.
Classes = Mapping[str, np.ndarray[Any, Any]]


class Measure:
    """The summary of a stream of numbers: exact moments and a uniform sample for the quantiles.

    Each number draws a key; those with the smallest keys are the sample. Moments of blocks are
    combined after Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances", 1979.
    """

    def __init__(self) -> None:
        self.count = self.nan = self.inf = 0
        self._min, self._max = math.inf, -math.inf
        self._mean = self._squares = 0.0
        self._integers = True
        self._random = np.random.default_rng(0)
        self._keys: Floats = np.empty(0)
        self._values: Floats = np.empty(0)
        self._below = 1.0

    def add(self, numbers: Any) -> None:
        """Takes an array or a list of numbers."""
        given = np.asarray(numbers, dtype=np.float64).ravel()
        finite = np.isfinite(given)
        if not finite.all():
            self.nan += int(np.isnan(given).sum())
            self.inf += int(np.isinf(given).sum())
            given = given[finite]
        if given.size:
            self._combine(given)
            self._draw(given)

    def _combine(self, given: Floats) -> None:
        total = self.count + given.size
        # Squares of huge numbers are infinite; then so is the deviation, and none is reported.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(given.mean())
            squares = float(np.square(given - mean).sum())
            apart = mean - self._mean
            self._squares += squares + apart * apart * self.count * given.size / total
        self._mean += apart * given.size / total
        self.count = total
        self._min = min(self._min, float(given.min()))
        self._max = max(self._max, float(given.max()))
        self._integers = self._integers and bool((given == np.floor(given)).all())

    def _draw(self, given: Floats) -> None:
        keys = self._random.random(given.size)
        kept = keys < self._below
        self._keys = np.concatenate((self._keys, keys[kept]))
        self._values = np.concatenate((self._values, given[kept]))
        if self._keys.size > SAMPLE:
            order = np.argpartition(self._keys, SAMPLE)[:SAMPLE]
            self._keys, self._values = self._keys[order], self._values[order]
            self._below = float(self._keys.max())

    def numbers(self) -> Numbers | None:
        """The summary; None when there was no number at all."""
        if not self.count:
            if not self.nan + self.inf:
                return None
            nothing = (0.0,) * len(LEVELS)
            return Numbers(0, 0.0, 0.0, 0.0, 0.0, False, self.nan, self.inf, nothing)
        middle = np.quantile(self._values, LEVELS[1:-1])
        std = math.sqrt(self._squares / self.count)
        return Numbers(
            count=self.count,
            min=self._min,
            max=self._max,
            mean=_finite(self._mean),
            std=_finite(std),
            integers=self._integers,
            nan=self.nan,
            inf=self.inf,
            quantiles=(self._min, *map(float, middle), self._max),
        )


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0


def classes_of(labels: Sequence[Any]) -> Classes:
    """The indices of the records of each class; records without a class are omitted."""
    found: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        if label is not None and label != "":
            found.setdefault(label, []).append(index)
    return {written(label): np.array(indices) for label, indices in found.items()}


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970 of a date or of a text in ISO 8601; None for anything else.

    >>> seconds_of("1970-01-02"), seconds_of("soon")
    (86400.0, None)
    """
    if isinstance(value, str):
        if not (8 <= len(value) <= 40 and value[:4].isdigit() and value[4:5] in ("-", "W")):
            return None
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    return None


def kind_of(value: Any, *, texts: bool = False) -> Kind:
    """The kind of one value; ``empty`` where there is none, and never ``category``.

    Args:
        value: of a record.
        texts: whether numbers and missing values come as texts.

    >>> kind_of("a"), kind_of(None), kind_of("2024-05-01"), kind_of([1])
    ('text', 'empty', 'date', 'list')
    >>> kind_of("1.5"), kind_of("1.5", texts=True)
    ('text', 'number')
    """
    if value is None or (texts and isinstance(value, str) and value in MISSING):
        return "empty"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, list | tuple | dict) or (isinstance(value, np.ndarray) and value.ndim):
        return "list"
    if seconds_of(value) is not None:
        return "date"
    if isinstance(value, str) and not texts:
        return "text"
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return "text"
    return "number"


class ColumnSummary:
    """Summarizes the values of a column as they come.

    Args:
        name: of the column.
        texts: whether numbers and missing values come as texts.
    """

    def __init__(self, name: str, *, texts: bool = False) -> None:
        self.name = name
        self._texts = texts
        self._count = self._missing = 0
        self._kinds: Counter[Kind] = Counter()
        self._numbers, self._lengths, self._tokens = Measure(), Measure(), Measure()
        self._dates, self._elements = Measure(), Measure()
        self._different: Counter[Any] | None = Counter()
        self._unique = True
        self._garbled = self._changes = self._padded = 0
        self._long = False
        self._last: Any = None
        self._characters: Counter[str] = Counter()
        self._times = False
        self._shape: tuple[int, ...] | None = None
        self._dtype = ""
        self._by_label: dict[str, Measure] = {}

    @property
    def count(self) -> int:
        """The number of records so far."""
        return self._count

    def add_missing(self, count: int) -> None:
        """Takes records that do not have the column."""
        self._count += count
        self._missing += count

    def add(self, values: Sequence[Any], classes: Classes | None = None) -> None:
        """Takes the values of some records, and if known which of them are of each class."""
        self._count += len(values)
        if isinstance(values, np.ndarray):
            numbers = self._add_array(values)
        else:
            numbers = as_numbers(values, texts=self._texts)
            if numbers is None:
                numbers = self._add_mixed(values)
            else:
                self._add_numbers(numbers)
                self._count_padded(values)
        if classes is not None and numbers is not None:
            self._add_by_label(numbers, classes)

    def _add_array(self, values: np.ndarray[Any, Any]) -> Floats | None:
        self._dtype = values.dtype.name
        if values.ndim == 1:
            numbers = values.astype(np.float64)
            self._add_numbers(numbers)
            return numbers
        first = self._shape is None and not self._kinds
        self._shape = values.shape[1:] if first or self._shape == values.shape[1:] else None
        self._kinds["list"] += len(values)
        self._different = None
        self._unique = False
        self._lengths.add(np.full(len(values), values.shape[1]))
        self._elements.add(values)
        return None

    def _add_numbers(self, numbers: Floats) -> None:
        self._kinds["number"] += len(numbers)
        self._numbers.add(numbers)
        if self._different is not None:
            values, counts = np.unique(numbers, return_counts=True)
            self._count_values(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _count_padded(self, values: Sequence[Any]) -> None:
        if self._texts:
            self._padded += sum(text[:1] == "0" and text[1:2].isdigit() for text in values)

    def _add_mixed(self, values: Sequence[Any]) -> Floats | None:
        """Values of several kinds, or none that are numbers; the numbers if all others are missing."""
        missing = MISSING if self._texts else {None}
        if _hashable(values):
            present = [value for value in values if value not in missing]
            if present and (numbers := as_numbers(present, texts=self._texts)) is not None:
                self._missing += len(values) - len(present)
                self._add_numbers(numbers)
                self._count_padded(present)
                absent = np.fromiter(map(missing.__contains__, values), np.bool_, len(values))
                placed = np.full(len(values), np.nan)
                placed[~absent] = numbers
                return placed
            if _as_seconds(present) is not None:
                self._missing += len(values) - len(present)
                self._add_kinds({"date": present})
                return None
        self._add_kinds(_by_kind(values, texts=self._texts))
        return None

    def _add_kinds(self, by_kind: Mapping[Kind, list[Any]]) -> None:
        for kind, values in by_kind.items():
            if not values:
                continue
            if kind == "empty":
                self._missing += len(values)
            elif kind == "number":
                self._add_numbers(np.array([float(value) for value in values]))
                self._count_padded(values)
            else:
                self._kinds[kind] += len(values)
                _ADD[kind](self, values)

    def _add_texts(self, values: list[Any]) -> None:
        texts = [value if isinstance(value, str) else str(value) for value in values]
        for text in texts[:: max(1, len(texts) // ALPHABET_TEXTS)]:
            self._characters.update("".join(text[:ALPHABET_LENGTH].split()))
        counts = Counter(texts)
        times = np.fromiter(counts.values(), np.int64, len(counts))
        self._lengths.add(np.repeat([len(text) for text in counts], times))
        self._tokens.add(np.repeat([len(text.split()) for text in counts], times))
        self._garbled += sum(n for text, n in counts.items() if is_garbled(text))
        if self._different is not None:
            long = {text for text in counts if len(text) > LONGEST_CATEGORY}
            self._long = self._long or bool(long)
            # Long texts are only counted, so their hash is enough.
            self._count_values(
                {hash(text) if text in long else text: n for text, n in counts.items()}
            )

    def _add_booleans(self, values: list[Any]) -> None:
        counts = Counter(map(bool, values))
        self._count_values({str(value).lower(): count for value, count in counts.items()})

    def _add_dates(self, values: list[Any]) -> None:
        self._times = self._times or any(
            isinstance(value, datetime) or (isinstance(value, str) and len(value) > 10)
            for value in values
        )
        seconds = _as_seconds(values)
        self._dates.add([seconds_of(value) for value in values] if seconds is None else seconds)

    def _add_lists(self, values: list[Any]) -> None:
        self._lengths.add(list(map(len, values)))
        self._different = None
        for value in values:
            if isinstance(value, list) and (elements := as_numbers(value)) is not None:
                self._elements.add(elements)

    def _count_values(self, counts: Mapping[Any, int]) -> None:
        if self._different is None:
            return
        for value, count in counts.items():
            self._unique = self._unique and count == 1 and value not in self._different
            self._different[value] += count
        if len(self._different) > MOST_DIFFERENT:
            self._different = None

    def _add_by_label(self, numbers: Floats, classes: Classes) -> None:
        for label, indices in classes.items():
            if label in self._by_label or len(self._by_label) < MOST_WHOLE:
                self._by_label.setdefault(label, Measure()).add(numbers[indices])

    def add_order(self, values: Sequence[Any]) -> None:
        """Counts how often the value differs from that of the record before."""
        listed = [self._last, *values]
        self._changes += sum(map(bool, map(operator.ne, listed[1:], listed))) - (self._last is None)
        self._last = listed[-1]

    def column(self, *, every: bool = False) -> ColumnProfile:
        """The summary of all values.

        Args:
            every: whether all categories are named, and not only those that are frequent.
        """
        kind = self._kind(every)
        present = self._count - self._missing
        categories = self._categories(kind, every)
        mine = self._kinds["text"] if kind == "category" else self._kinds[kind]
        measures = {"number": self._numbers, "date": self._dates, "list": self._elements}
        return ColumnProfile(
            name=self.name,
            kind=kind,
            count=self._count,
            missing=self._missing,
            others=0 if kind == "empty" else present - mine,
            unique=self._unique and present > 1 and kind in ("number", "text"),
            categories=categories,
            rest=mine - sum(count for _, count in categories) if kind == "category" else 0,
            numbers=measures[kind].numbers() if kind in measures else None,
            lengths=self._lengths.numbers() if kind in ("text", "list") else None,
            tokens=self._tokens.numbers() if kind == "text" else None,
            alphabet=self._alphabet() if kind == "text" else (),
            pattern=("datetime" if self._times else "date") if kind == "date" else "",
            shape=self._shape,
            dtype=self._dtype,
            by_label=tuple(
                (name, numbers)
                for name, measure in sorted(self._by_label.items())
                if (numbers := measure.numbers()) is not None
            )
            if kind == "number"
            else (),
            distinct=len(self._different or ()),
            garbled=self._garbled,
            padded=self._padded,
            changes=max(0, self._changes),
        )

    def _kind(self, every: bool) -> Kind:
        if not self._kinds:
            return "empty"
        kind, count = self._kinds.most_common(1)[0]
        if count < DOMINANT * self._kinds.total() and self._kinds["text"]:
            kind = "text"
        return "category" if kind == "text" and self._is_category(every) else kind

    def _is_category(self, every: bool) -> bool:
        if self._different is None or self._long:
            return False
        often = len(self._different) * FEWEST <= self._different.total()
        return every or (often and len(self._different) <= MOST_CATEGORIES)

    def _categories(self, kind: Kind, every: bool) -> tuple[tuple[str, int], ...]:
        if self._different is None or kind not in ("category", "boolean", "number"):
            return ()
        if kind == "number":
            whole = all(isinstance(v, float) and v.is_integer() for v in self._different)
            most = MOST_CATEGORIES if every else MOST_WHOLE
            # Numbers that seldom come twice are measured, not classes.
            seldom = len(self._different) * 2 > self._different.total()
            if not whole or len(self._different) > most or seldom:
                return ()
        counts = Counter({written(value): count for value, count in self._different.items()})
        return tuple(
            (value, count)
            for value, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            if every or count >= FEWEST
        )

    def _alphabet(self) -> tuple[tuple[str, float], ...]:
        frequent = [item for item in self._characters.most_common(ALPHABET) if item[1] >= FEWEST]
        total = sum(count for _, count in frequent)
        return tuple((character, round(count / total, 6)) for character, count in frequent)


_ADD = {
    "text": ColumnSummary._add_texts,
    "boolean": ColumnSummary._add_booleans,
    "date": ColumnSummary._add_dates,
    "list": ColumnSummary._add_lists,
}


# What Windows-1252 makes of the two to four bytes of a UTF-8 character begins with one of these.
_GARBLED = re.compile("[\u00c2-\u00f4][^\\x00-\\x7f]{1,3}")


def is_garbled(text: str) -> bool:
    """Whether UTF-8 was decoded as Windows-1252 or Latin-1, or bytes were replaced (U+FFFD).

    >>> is_garbled("cafÃ©"), is_garbled("café"), is_garbled("naïve Ã")
    (True, False, False)
    """
    if text.isascii():
        return False
    return "\ufffd" in text or any(
        _decodes(found.group(), encoding)
        for found in _GARBLED.finditer(text)
        for encoding in ("cp1252", "latin-1")
    )


def _decodes(characters: str, encoding: str) -> bool:
    """Whether characters are the bytes of UTF-8 characters."""
    try:
        characters.encode(encoding).decode("utf-8")
    except UnicodeError:
        return False
    return True


def written(value: Any) -> str:
    """A category as a profile names it: whole numbers without a fraction.

    >>> written(3.0), written("a")
    ('3', 'a')
    """
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def _hashable(values: Sequence[Any]) -> bool:
    return set(map(type, values)) <= {str, int, float, bool, type(None)}


# With these begin the texts that may be numbers, dates or nothing, as `float` and `MISSING` have it.
_OTHER_STARTS = frozenset(("", *"0123456789+-.iInN<# \t\r\n\f\v"))


def _by_kind(values: Sequence[Any], *, texts: bool) -> Mapping[Kind, list[Any]]:
    """The values of each kind."""
    if set(map(type, values)) == {str}:
        # Texts often come again, and mostly all of them are of one kind.
        kinds = {value: kind_of_text(value, texts=texts) for value in set(values)}
        if len(set(kinds.values())) == 1:
            return {kinds[values[0]]: list(values)}
        of = kinds.__getitem__
    else:
        of = partial(kind_of, texts=texts)
    found: dict[Kind, list[Any]] = {}
    for value in values:
        found.setdefault(of(value), []).append(value)
    return found


def kind_of_text(value: str, *, texts: bool) -> Kind:
    """What `kind_of` says, sooner."""
    plain = value.isascii() and value[:1] not in _OTHER_STARTS
    return "text" if plain else kind_of(value, texts=texts)


def _as_seconds(values: Sequence[Any]) -> Floats | None:
    """What `seconds_of` says of texts that are all dates, or all date and time to the second."""
    if set(map(type, values)) != {str} or not set(map(len, values)) <= {10, 19}:
        return None
    if values[0][4] != "-":
        return None
    try:
        seconds = np.array(values, dtype="datetime64[s]").astype(np.float64)
    except ValueError:
        return None
    low, high = PYTHON_DATES
    return seconds if low <= seconds.min() and seconds.max() <= high else None


def as_numbers(values: Sequence[Any], *, texts: bool = False) -> Floats | None:
    """The numbers that all values are, or None; truth values are none, and no text is NaN."""
    if not set(map(type, values)) <= ({str} if texts else {int, float}):
        return None
    try:
        numbers = np.fromiter(map(float, values), dtype=np.float64, count=len(values))
    except (ValueError, OverflowError):
        return None
    if texts and np.isnan(numbers).any():
        return None
    return numbers
