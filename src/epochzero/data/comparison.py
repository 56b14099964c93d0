"""What differs between a table and the one that a profile describes.

Thresholds are chosen so that another sample of the same source gives no finding:

- A number is out of range beyond the outer fences, three interquartile ranges from the quartiles
  (Tukey, Exploratory Data Analysis, 1977), *and* farther beyond the known extreme than that is from
  the nearest 5 % of the values: another sample of a long tail extends a little further, not so far.
- Distributions and shares differ by a significant test *and* at least a medium effect (`statistics`).
- A class is missing when its known share would leave it out with a probability below one in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import numpy as np

from epochzero.data.formats import formats
from epochzero.data.measures import SPANS
from epochzero.data.model import FAULTS, LEVELS, ColumnProfile, DataTable, Numbers
from epochzero.data.relations import MOST_RECORDS, column_of
from epochzero.data.statistics import (
    SIGNIFICANT,
    alphabet_distance,
    distribution_distance,
    never_by_chance,
    order_ratio,
    relation_shift,
    share_at,
    share_grew,
    share_shift,
)
from epochzero.data.summary import MOST_DIFFERENT, is_garbled, kind_of, seconds_of, written

Severity = Literal["error", "warning"]

FENCE = 3.0
# Missing values are more than known when their share grew by so much, and not by chance.
MISSING_GROWTH = 0.1
FEW_RECORDS = 0.1
# Texts in two languages with one script differ by less than this (`alphabet_distance`).
OTHER_ALPHABET = 0.4
# Share of the characters that are no letters or digits, and that the profile does not have: markup, escapes.
NEW_MARKS = 0.005
# Relative to a random order (`order_ratio`): the profile has none, the data have one.
UNORDERED, ORDERED = 0.5, 0.1
# A column without repeated values that is no identifier may repeat so many.
REPEATED = 0.01
# A column of fewer records may be constant by chance.
FEWEST_CONSTANT = 20
# Correlations of fewer records vary too much.
FEWEST_RELATED = 100
# What is computed of fewer records says nothing of others.
FEWEST_MEASURED = 20
# Values are fewer than known below this share of the number expected, if that is no less than this.
FEWER, FEWEST_EXPECTED = 0.5, 20
# Without these a file, and the records in it, cannot be used as they are.
SERIOUS = frozenset(
    (
        "unreadable",
        "broken",
        "empty_file",
        "too_large",
        "unparsable",
        "fields",
        "long_line",
        "not_utf8",
    )
)


@dataclass(frozen=True, slots=True)
class DataFinding:
    """A way in which data differ from those of the profile.

    Attributes:
        severity: ``error`` when what reads the data as they were known would fail or be wrong,
            ``warning`` when it may.
        kind: what differs: a word of the guide, or one of the faults of a profile.
        table, column: where; ``column`` may be empty.
        message: what is so, and what was known.
        file: the first file where it is so, relative to the data set; empty where it is no file's.
        record: number of the first such record (of a fault in a text file: the line), from 1; 0
            where it is no record's.
        count: how many records or files are so.
    """

    severity: Severity
    kind: str
    table: str
    column: str
    message: str
    file: str = ""
    record: int = 0
    count: int = 1


# Whether a value of a column is one that a finding is about.
Bad = Callable[[Any], bool]
Compared = Iterator[tuple[DataFinding, Bad | None]]

# Kinds that differ only in how many different values there are.
_SAME = {"category": "text"}


def compare(known: DataTable, found: DataTable, *, whole: bool = True) -> Compared:
    """The findings of a table, each with the values that it is about, if it is about values.

    Args:
        known: what the table should be like.
        found: what it is like.
        whole: whether all of it was read; the shares and counts of a part say nothing.
    """
    yield from _files(known, found)
    if not found.records:
        message = f"no records; the profile has {known.records:,}"
        yield DataFinding("error", "empty", found.name, "", message), None
        return
    if whole and found.records < FEW_RECORDS * known.records:
        message = f"records: {found.records:,}; in the profile: {known.records:,}"
        yield DataFinding("warning", "few_records", found.name, "", message), None
    explained = {column.name for column in known.columns}
    for column in found.columns:
        if known.column(column.name) is None:
            message = f"column {column.name!r} is not in the profile"
            yield DataFinding("warning", "extra_column", found.name, column.name, message), None
    for expected in known.columns:
        now = found.column(expected.name)
        if now is None:
            message = f"column {expected.name!r} is missing"
            yield DataFinding("error", "missing_column", found.name, expected.name, message), None
        elif expected.kind != "empty":
            compared = list(_column(_Pair(known, found, expected, now, whole)))
            yield from compared
            if not compared:
                explained.discard(expected.name)
    measured: set[str] = set()
    for measure in known.measures:
        current = next((each for each in found.measures if each.name == measure.name), None)
        if current is not None and measure.name.partition(" of ")[2] not in explained:
            compared = list(_measure(_Pair(known, found, measure, current, whole)))
            yield from compared
            measured |= {column_of(finding.column) for finding, _ in compared}
    if whole:
        yield from _relations(known, found, explained | measured)


def _relations(known: DataTable, found: DataTable, explained: set[str]) -> Compared:
    """Columns whose relations to others have changed: the largest change first, then those that it does not explain."""
    count, count_now = (min(each.records, MOST_RECORDS) for each in (known, found))
    if min(count, count_now) < FEWEST_RELATED:
        return
    now = {(a, b): r for a, b, r in found.relations}
    pairs = {
        (a, b): (r, now[a, b])
        for a, b, r in known.relations
        if (a, b) in now and explained.isdisjoint((column_of(a), column_of(b)))
    }
    alike = sum(r * r for r, _ in pairs.values()) / max(1, len(pairs))
    while pairs:
        of: dict[str, list[tuple[float, float]]] = {}
        for pair, both in pairs.items():
            for feature in pair:
                of.setdefault(column_of(feature), []).append(both)
        shifts = {
            name: relation_shift(values, count, count_now, alike) for name, values in of.items()
        }
        worst = max(shifts, key=shifts.__getitem__)
        if not shifts[worst]:
            return
        own = {pair: both for pair, both in pairs.items() if worst in map(column_of, pair)}
        (a, b), (r, r_now) = max(own.items(), key=lambda item: abs(item[1][0] - item[1][1]))
        message = (
            f"the rank correlation of {a!r} and {b!r} is {r_now:.2f}, but {r:.2f} in the profile: the values"
            " may belong to other records or to another column"
        )
        yield DataFinding("warning", "relation", found.name, worst, message), None
        pairs = {pair: both for pair, both in pairs.items() if pair not in own}


def _files(known: DataTable, found: DataTable) -> Compared:
    """Faults that the known files did not have, and another way to write them."""
    kinds = {fault.kind for fault in known.faults}
    for fault in found.faults:
        if fault.kind not in kinds:
            severity: Severity = "error" if fault.kind in SERIOUS else "warning"
            message = ": ".join(filter(None, (FAULTS[fault.kind], fault.message)))
            yield (
                DataFinding(
                    severity,
                    fault.kind,
                    found.name,
                    "",
                    message,
                    fault.file,
                    fault.record,
                    fault.count,
                ),
                None,
            )
    details = dict(found.details)
    for name, value in known.details:
        if name in details and details[name] != value and found.records:
            message = f"the {name} is {details[name]!r}; in the profile it is {value!r}"
            kind = "encoding" if name == "encoding" else "layout"
            yield DataFinding("error", kind, found.name, "", message), None


@dataclass(frozen=True, slots=True)
class _Pair:
    """A column with the one that is known."""

    known_table: DataTable
    table: DataTable
    known: ColumnProfile
    found: ColumnProfile
    whole: bool

    def finding(
        self, kind: str, message: str, severity: Severity = "warning", count: int = 1
    ) -> DataFinding:
        """A finding about the column."""
        return DataFinding(severity, kind, self.table.name, self.known.name, message, count=count)

    @property
    def texts(self) -> bool:
        """Whether the table's format has only texts; what is in memory has none."""
        form = formats().get(self.table.format)
        return form is not None and form.only_texts

    def kind_of(self, value: Any) -> str:
        """The kind of a value of the table."""
        return kind_of(value, texts=self.texts)


def _column(pair: _Pair) -> Compared:
    known, found = pair.known, pair.found
    yield from _missing(pair)
    if found.kind == "empty":
        return
    kind, now = _SAME.get(known.kind, known.kind), _SAME.get(found.kind, found.kind)
    if kind != now:
        message = f"the values are of kind {now}; in the profile they are of kind {kind}"
        yield (
            pair.finding("type", message, "error", found.count - found.missing),
            _other(pair, kind),
        )
        return
    if found.others and not known.others:
        message = f"values that are not of kind {kind}: {found.others:,}"
        yield pair.finding("type", message, "error", found.others), _other(pair, kind)
    # An array with missing numbers has no type.
    plain = known.kind == "number" and not (known.dtype and found.dtype)
    if not plain and (known.shape, known.dtype) != (found.shape, found.dtype):
        message = f"an item is {_item(found)}; in the profile it is {_item(known)}"
        yield pair.finding("type", message, "error"), None
    if pair.whole and not found.padded and never_by_chance(known.padded / known.count, found.count):
        message = f"no number starts with a zero; in the profile {known.padded:,} do, such as codes"
        yield pair.finding("lost_zeros", message), None
    distribution = list(_distribution(pair)) if pair.whole else []
    yield from distribution
    fewer = list(_variety(pair)) if pair.whole and not distribution else []
    yield from fewer
    yield from _numbers(pair)
    # Where all values differ, the extreme ones say nothing more.
    if not distribution:
        yield from _range(pair)
        yield from _lengths(pair)
    yield from _texts(pair)
    # Values that are constant or rounded also repeat: one cause, one finding.
    if not fewer and all(finding.kind != "constant" for finding, _ in distribution):
        yield from _repeated(pair)
    if pair.whole:
        yield from _by_label(pair)
    if known.categories:
        yield from _classes(pair)


def _item(column: ColumnProfile) -> str:
    """Type and shape of an array for people."""
    shape = "of various shapes" if column.shape is None else str(list(column.shape))
    return f"{column.dtype or 'an array of various types'} {shape}"


def _measure(pair: _Pair) -> Compared:
    """What is computed of the records differs; no value alone is wrong."""
    name, _, column = pair.known.name.partition(" of ")
    of = pair.table.column(column)
    span = of.numbers.max - of.numbers.min if of and of.numbers else math.inf
    few = pair.known.count < FEWEST_MEASURED
    if few or pair.known.kind != pair.found.kind or span < SPANS.get(name, 0):
        return
    # One record that is far from the others may come from the same source.
    compared = list(_distribution(pair)) if pair.whole else []
    compared = compared or list(_repeated(pair))
    if pair.whole:
        compared += _by_label(pair)
    if pair.known.categories and pair.known.kind == "category":
        compared += _classes(pair)
    yield from ((finding, None) for finding, _ in compared)


def _other(pair: _Pair, kind: str) -> Bad:
    return lambda value: pair.kind_of(value) not in (kind, "empty")


def _missing(pair: _Pair) -> Compared:
    """Values that are missing where none or far fewer were, or none where many were."""
    known, found = pair.known, pair.found
    before, now = known.missing / known.count, found.missing / found.count
    if not found.missing:
        if pair.whole and never_by_chance(before, found.count):
            message = (
                f"no missing values; in the profile: {before:.1%}; they may have been filled in"
            )
            yield pair.finding("missing", message), None
        return
    grew = now - before > MISSING_GROWTH and share_grew(
        known.missing, known.count, found.missing, found.count
    )
    if known.missing and not (pair.whole and grew):
        return
    severity: Severity = "error" if found.kind == "empty" and known.kind != "empty" else "warning"
    message = f"missing values: {found.missing:,} of {found.count:,} ({now:.1%}); in the profile: {before:.1%}"
    finding = pair.finding("missing", message, severity, found.missing)
    yield finding, lambda value: pair.kind_of(value) == "empty"


def _numbers(pair: _Pair) -> Compared:
    known, found = pair.known.numbers, pair.found.numbers
    if known is None or found is None:
        return
    if found.nan and not known.nan:
        message = f"NaN values: {found.nan:,}; in the profile: none"
        yield pair.finding("nan", message, count=found.nan), lambda value: _any(np.isnan, value)
    if found.inf and not known.inf:
        message = f"infinite values: {found.inf:,}; in the profile: none"
        yield pair.finding("inf", message, count=found.inf), lambda value: _any(np.isinf, value)
    if known.count and known.integers and found.count and not found.integers:
        message = "some values are not integers; in the profile all are"
        fraction = pair.finding("type", message, "error")
        yield fraction, lambda value: _any(lambda numbers: numbers % 1 != 0, value)


def _range(pair: _Pair) -> Compared:
    """Numbers far beyond any that were known.

    New identifiers lie beyond the known ones, and so do times; they are reported only if they are
    also far from the others of the same data.
    """
    known, found = pair.known.numbers, pair.found.numbers
    if known is None or found is None or not known.count or not found.count:
        return
    low, high = _bounds(known)
    if pair.known.unique and known.integers:
        fence = FENCE * (_quantile(found, 0.75) - _quantile(found, 0.25))
        low = min(low, _quantile(found, 0.25) - fence)
        high = max(high, _quantile(found, 0.75) + fence)
    if found.min < low or found.max > high:
        shown = _shown(pair.known)
        message = f"the values range from {shown(found.min)} to {shown(found.max)}; in the profile from {shown(known.min)} to {shown(known.max)}"
        yield (
            pair.finding("range", message),
            lambda value: _any(lambda numbers: (numbers < low) | (numbers > high), value),
        )


def _bounds(known: Numbers) -> tuple[float, float]:
    """What a value may be."""
    lower, upper = _quantile(known, 0.25), _quantile(known, 0.75)
    fence = FENCE * (upper - lower)
    return (
        min(2 * known.min - _quantile(known, 0.05), lower - fence),
        max(2 * known.max - _quantile(known, 0.95), upper + fence),
    )


def _quantile(numbers: Numbers, level: float) -> float:
    return numbers.quantiles[LEVELS.index(level)]


def _shown(column: ColumnProfile) -> Callable[[float], str]:
    if column.kind == "date":
        return lambda seconds: datetime.fromtimestamp(seconds, UTC).date().isoformat()
    return lambda number: f"{number:,.6g}"


def _any(test: Callable[[Any], Any], value: Any) -> bool:
    """Whether a test is true of any number of a value."""
    return bool(test(_floats(value)).any())


def _floats(value: Any) -> np.ndarray[Any, Any]:
    """The numbers of a value: one, those of a list, or none."""
    seconds = seconds_of(value)
    try:
        return np.atleast_1d(np.asarray(value if seconds is None else seconds, dtype=np.float64))
    except (TypeError, ValueError):
        return np.empty(0)


def _lengths(pair: _Pair) -> Compared:
    """Texts and lists that are longer or shorter than any that were known."""
    known, found = pair.known.lengths, pair.found.lengths
    if known is None or found is None:
        return
    shortest, longest = _bounds(known)
    what = "characters" if pair.known.kind == "text" else "elements"
    if found.max > longest:
        message = f"the longest value has {found.max:,.0f} {what}; in the profile {known.max:,.0f}"
        yield pair.finding("length", message), lambda value: _length(value) > longest
    # A text without words is a finding of its own.
    elif 0 < found.min < shortest:
        message = f"the shortest value has {found.min:,.0f} {what}; in the profile {known.min:,.0f}"
        yield pair.finding("length", message), lambda value: 0 < _length(value) < shortest


def _texts(pair: _Pair) -> Compared:
    """Texts without a word, decoded wrongly, or in another script."""
    known, found = pair.known, pair.found
    if known.tokens and found.tokens and known.tokens.min and not found.tokens.min:
        message = "some texts have no words; in the profile all have"
        yield pair.finding("empty_text", message), lambda value: not str(value).strip()
    if found.garbled and not known.garbled:
        message = f"texts decoded with the wrong encoding: {found.garbled:,}"
        garbled = pair.finding("garbled", message, count=found.garbled)
        yield garbled, lambda value: isinstance(value, str) and is_garbled(value)
    distance = alphabet_distance(known.alphabet, found.alphabet)
    if known.alphabet and found.alphabet and distance >= OTHER_ALPHABET:
        letters = "".join(character for character, _ in found.alphabet[:8])
        usual = "".join(character for character, _ in known.alphabet[:8])
        message = f"the most frequent characters are {letters!r}; in the profile {usual!r}"
        yield pair.finding("alphabet", message), None
    before = {character for character, _ in known.alphabet}
    new = {c: share for c, share in found.alphabet if c not in before and not c.isalnum()}
    if known.alphabet and sum(new.values()) >= NEW_MARKS:
        message = f"{sum(new.values()):.1%} of the characters are {' '.join(new)}; in the profile none are"
        yield pair.finding("alphabet", message), lambda value: not new.keys().isdisjoint(str(value))


def _repeated(pair: _Pair) -> Compared:
    """Values that occur twice where none did: identifiers, or a good part of the others."""
    known, found = pair.known, pair.found
    if not known.unique or found.unique or not found.distinct:
        return
    count = found.count - found.missing - found.others - found.distinct
    words = known.tokens.max if known.tokens else 0
    identifier = words == 1 or (known.numbers is not None and _is_identifier(pair, known.numbers))
    if count > 0 and (identifier or count > REPEATED * found.count):
        message = f"repeated values: {count:,}; in the profile no value occurs twice"
        yield pair.finding("repeated", message, count=count), _repeats(pair)


def _is_identifier(pair: _Pair, known: Numbers) -> bool:
    """Whether whole numbers that are unique in the profile are so by design, and not by chance.

    Of n numbers drawn from R, n² / 2R pairs are expected to be equal (the birthday problem). Times
    in seconds, for example, can be unique in one part and repeat in another.
    """
    if not known.integers:
        return False
    pairs = 1 / (2 * (known.max - known.min + 1))
    expected, expected_now = pairs * known.count**2, pairs * pair.found.count**2
    return math.exp(-expected) < SIGNIFICANT or expected_now < SIGNIFICANT


def _repeats(pair: _Pair) -> Bad:
    """Whether a value was given before."""
    seen: set[str] = set()

    def repeats(value: Any) -> bool:
        text = str(value)
        known = text in seen
        seen.add(text)
        return known and pair.kind_of(value) != "empty"

    return repeats


def _variety(pair: _Pair) -> Compared:
    """Far fewer different values than a part of the profile would have: rounded, or stuck.

    A part of n records has on average at least n / N of the different values of N records.
    """
    known, found = pair.known, pair.found
    if known.others:
        return
    before = known.distinct or (MOST_DIFFERENT if known.kind == "number" else 0)
    expected = before * min(1, found.count / known.count)
    if found.distinct and expected >= FEWEST_EXPECTED and found.distinct < FEWER * expected:
        message = f"different values: {found.distinct:,}; by the profile, {expected:,.0f} or more are expected"
        yield pair.finding("fewer_values", message), None


def _distribution(pair: _Pair) -> Compared:
    """Numbers and lengths that are distributed differently; time and identifiers go on."""
    known, found = pair.known, pair.found
    if known.kind == "date" and not _is_within(known.numbers, found.numbers):
        return
    if known.kind != "date" and known.unique and known.numbers and known.numbers.integers:
        return
    shown = _shown(known)
    for what, before, now in (
        ("value", known.numbers, found.numbers),
        ("length", known.lengths, found.lengths),
        ("number of words", known.tokens, found.tokens),
    ):
        if not before or not now or not before.count or not now.count:
            continue
        constant = now.min == now.max and before.min < before.max and now.count >= FEWEST_CONSTANT
        if constant and never_by_chance(1 - share_at(before, now.min), now.count):
            message = f"every {what} is {shown(now.min)}; in the profile they range from {shown(before.min)} to {shown(before.max)}"
            yield pair.finding("constant", message), None
        elif (distance := distribution_distance(before, now)) is not None:
            message = (
                f"the median {what} is {shown(_quantile(now, 0.5))}, in the profile {shown(_quantile(before, 0.5))}"
                f" (Kolmogorov-Smirnov D = {distance:.2f})"
            )
            yield pair.finding("distribution", message), None


def _is_within(known: Numbers | None, found: Numbers | None) -> bool:
    """Whether dates lie between those that are known: time has not gone on."""
    return bool(known and found and known.min <= found.min and found.max <= known.max)


def _by_label(pair: _Pair) -> Compared:
    """Numbers that are as before, but not those of the records of each class."""
    known, found = dict(pair.known.by_label), dict(pair.found.by_label)
    both = sorted(known.keys() & found.keys())
    if not pair.known.numbers or not pair.found.numbers or len(both) < 2:
        return
    if distribution_distance(pair.known.numbers, pair.found.numbers) is not None:
        return
    apart = {
        name: distance
        for name in both
        if (distance := distribution_distance(known[name], found[name], tests=len(both)))
    }
    if apart:
        worst = max(apart, key=apart.__getitem__)
        message = (
            f"the median value of class {worst!r} is {_quantile(found[worst], 0.5):,.6g}, in the profile"
            f" {_quantile(known[worst], 0.5):,.6g} (Kolmogorov-Smirnov D = {apart[worst]:.2f}):"
            " the labels may not belong to their records"
        )
        yield pair.finding("relation", message), None


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def _classes(pair: _Pair) -> Compared:
    """Values that were not known, and of the whole table also known ones that are gone."""
    known, found = dict(pair.known.categories), dict(pair.found.categories)
    label = pair.known_table.label == pair.known.name
    if not label and pair.known.kind == "number":
        return
    if not found and pair.found.kind == "text":
        message = f"many different values; the profile has {len(known):,}"
        yield pair.finding("new_class", message), lambda value: written(value) not in known
        return
    for name in sorted(found.keys() - known.keys()):
        if not pair.known.rest or found[name] > pair.known.rest:
            message = f"{name!r} is not in the profile ({found[name]:,} {'record' if found[name] == 1 else 'records'})"
            severity: Severity = "error" if label else "warning"
            yield pair.finding("new_class", message, severity, found[name]), partial(_is, name)
    if pair.whole:
        yield from _shares(pair, known, found)


def _shares(pair: _Pair, known: Mapping[str, int], found: Mapping[str, int]) -> Compared:
    """Known values that are gone or have other shares, and a label that is sorted where its order was random."""
    total = sum(known.values()) + pair.known.rest
    now = sum(found.values()) + pair.found.rest
    for name in sorted(known.keys() - found.keys()):
        if not pair.found.rest and never_by_chance(known[name] / total, now):
            share = known[name] / total
            message = f"{name!r} is missing; in the profile it has {share:.1%} of the records"
            yield pair.finding("missing_class", message), None
    is_label = pair.known_table.label == pair.known.name
    if shift := share_shift(known, found):
        message = (
            f"the shares of the {'classes' if is_label else 'values'} differ: {shift.worst!r} {shift.now:.1%}, in the"
            f" profile {shift.before:.1%} (chi-square p = {shift.probability:.1g}, w = {shift.effect:.2f})"
        )
        yield pair.finding("label_shift" if is_label else "distribution", message), None
    if not is_label:
        return
    random_order = order_ratio(pair.known.changes, known)
    order = order_ratio(pair.found.changes, found)
    if random_order and order is not None and random_order >= UNORDERED and order <= ORDERED:
        message = "the records are sorted by class; in the profile they are in random order"
        yield pair.finding("sorted", message), None


def _is(name: str, value: Any) -> bool:
    return _category(value) == name


def _category(value: Any) -> str:
    """A value as a profile writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return written(float(value))
    except (TypeError, ValueError):
        return str(value)
