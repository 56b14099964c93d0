"""The analyses of a study of failures: each takes a corpus and returns tables and figures.

If the corpus lacks what an analysis needs, the analysis returns nothing, and `epochzero.study.failures` reports
that. Published numbers of Zhang et al. (ICSE 2020) are shown for comparison where they exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from epochzero import taxonomy
from epochzero.redact import redact
from epochzero.reports.figures import Figure, bars, cumulative, panels
from epochzero.reports.statistics import wilson
from epochzero.reports.tables import Column, Row, Table
from epochzero.study.corpora import FailureCorpus
from epochzero.study.published import zhang2020

Parts = list[str | Table | Figure]
"""Parts of a section of a report."""

MOST_ROWS = 20
"""Largest number of users, projects and the like in the report; the files contain all."""
_SHARE = Column("%", "share", cases="No.")
_INTERVAL = Column("95 % interval", "interval", cases="No.")


# What failed


def dimensions(corpus: FailureCorpus) -> Parts:
    """Failures by dimension, compared with the study."""
    ours = Counter[str]()
    for category, count in corpus.counts("category").items():
        ours[taxonomy.categories()[category].dimension] += count
    theirs = Counter[str]()
    for category, count in zhang2020().categories.items():
        theirs[taxonomy.categories()[category].dimension] += count
    order = list(taxonomy.dimensions())
    table = _beside_study("dimensions", "Failures by dimension", "Dimension", order, ours, theirs)
    return [table, _bars_beside_study("dimensions", "Dimensions", order, ours, theirs)]


def categories(corpus: FailureCorpus) -> Parts:
    """Failures by category, compared with the study."""
    ours, theirs = corpus.counts("category"), zhang2020().categories
    order = list(dict.fromkeys((*ours, *theirs)))
    table = _beside_study("categories", "Failures by category", "Category", order, ours, theirs)
    return [table, _bars_beside_study("categories", "Categories", order, ours, theirs)]


def _beside_study(
    name: str,
    caption: str,
    head: str,
    order: Sequence[str],
    ours: Mapping[str, int],
    theirs: Mapping[str, int],
) -> Table:
    """Counts and shares; the shares among categories of the study are compared with its own."""
    whole, whole_theirs = sum(ours.values()), sum(theirs.values())
    common = sum(count for word, count in ours.items() if word in theirs)
    rows: list[Row] = []
    for word in order:
        n, m = ours.get(word, 0), theirs.get(word)
        among = n / common if m is not None and common else None
        share = n / whole if whole else None
        theirs_share = None if m is None else m / whole_theirs
        rows.append((_title(word), n, share, wilson(n, whole), among, m, theirs_share))
    columns = (
        Column(head), Column("No.", "count"), _SHARE, _INTERVAL,
        Column("Comparable %", "share", cases="No."),
        Column("Study, No.", "count"), Column("Study, %", "share", cases="Study, No."),
    )  # fmt: skip
    study = zhang2020()
    notes = (
        f"Study: {study.short}, {study.sources['categories']}. It excluded infrastructure; "
        f"“Comparable %” excludes it too (n = {common:,}).",
    )
    return Table(name, caption, columns, tuple(rows), whole, notes=notes)


def _bars_beside_study(
    name: str,
    caption: str,
    order: Sequence[str],
    ours: Mapping[str, int],
    theirs: Mapping[str, int],
) -> Figure:
    """Bars of the shares among categories of the study, here and in the study."""
    study = zhang2020()
    words = [word for word in order if word in theirs]
    common = sum(ours.get(word, 0) for word in words)
    series = {
        f"{title} (n = {sum(counts.get(word, 0) for word in words):,})": [
            counts.get(word, 0) / max(1, whole) for word in words
        ]
        for title, counts, whole in (
            ("here", ours, common),
            (study.short, theirs, sum(theirs.values())),
        )
    }
    return bars(
        f"{name}-figure",
        f"{caption}, among those in the study",
        [_title(word) for word in words],
        series,
        axis="% of failures",
    )


def causes(corpus: FailureCorpus) -> Parts:
    """Category by root cause, and Figure 3 of the study."""
    known = corpus.where(~corpus.is_word("root_cause", "unknown") & corpus.knows("root_cause"))
    if not len(known):
        return []
    pairs = Counter(zip(known.texts("category"), known.texts("root_cause"), strict=True))
    rows = list(known.counts("category"))
    columns = [cause for cause in taxonomy.root_causes() if cause != "unknown"]
    unknown = len(corpus) - len(known)
    note = f"The root cause of {unknown:,} more failures is not known."
    ours = _cross(
        "causes", "Category by root cause", rows, columns, pairs, (note,) if unknown else ()
    )
    study = zhang2020()
    published = Counter({(r, c): n for r, row in study.root_causes.items() for c, n in row.items()})
    named = {c for _, c in published}
    theirs = _cross(
        "causes-study",
        f"The same in {study.short}, {study.sources['root_causes'].split(',')[0]}",
        list(study.root_causes),
        [c for c in columns if c in named],
        published,
    )
    return [ours, theirs]


def _cross(
    name: str,
    caption: str,
    rows: Sequence[str],
    columns: Sequence[str],
    pairs: Mapping[tuple[str, str], int],
    notes: tuple[str, ...] = (),
) -> Table:
    """Counts by two words, with both totals."""
    heads = [_title(column) for column in columns]
    body: list[Row] = []
    for row in rows:
        counts = [pairs.get((row, column), 0) for column in columns]
        body.append((_title(row), *counts, sum(counts)))
    totals = [sum(pairs.get((row, column), 0) for row in rows) for column in columns]
    body.append(("Total", *totals, sum(totals)))
    return Table(
        name,
        caption,
        (
            Column("Category"),
            *(Column(head, "count", cases=head) for head in heads),
            Column("Total", "count", cases="Total"),
        ),
        tuple(body),
        sum(totals),
        notes=notes,
    )


def phases(corpus: FailureCorpus) -> Parts:
    """Failures and GPU time by phase, compared with Figure 10 of the study."""
    study = zhang2020()
    known = corpus.where(~corpus.is_word("phase", "unknown") & corpus.knows("phase"))
    if not len(known):
        return []
    counts, whole = known.counts("phase"), len(known)
    hours = known.sums("phase", "gpu_hours")
    used = sum(hours.values())
    rows: list[Row] = []
    for phase in study.phases:
        n, published = counts.get(phase, 0), study.phases[phase]
        spent = (hours.get(phase, 0.0), hours.get(phase, 0.0) / used) if used else ()
        rows.append(
            (
                _title(phase), n, n / whole, wilson(n, whole), published["failures"],
                *spent, published["gpu_time"],
            )
        )  # fmt: skip
    gpu = (Column("GPU h", "number", cases="No."), Column("% of GPU time", "share", cases="No."))
    columns = (
        Column("Phase"), Column("No.", "count"), _SHARE, _INTERVAL, Column("Study, %", "share"),
        *(gpu if used else ()), Column("Study, % of GPU time", "share"),
    )  # fmt: skip
    notes = [f"Study: {study.short}, {study.sources['phases']}."]
    if unknown := len(corpus) - whole:
        notes.append(f"The phase of {unknown:,} more failures is not known.")
    table = Table("phases", "Failures by phase", columns, tuple(rows), whole, notes=tuple(notes))
    series = {"failures here": [counts.get(phase, 0) / whole for phase in study.phases]}
    series["failures, study"] = [phase["failures"] for phase in study.phases.values()]
    if used:
        series["GPU time here"] = [hours.get(phase, 0.0) / used for phase in study.phases]
    series["GPU time, study"] = [phase["gpu_time"] for phase in study.phases.values()]
    labels = [_title(phase) for phase in study.phases]
    return [
        table,
        bars("phases-figure", "Phases", labels, series, axis="% of failures, or of GPU time"),
    ]


# What it cost


def cost(corpus: FailureCorpus) -> Parts:
    """GPU hours of failures by category, user and project."""
    known = corpus.where(corpus.knows("gpu_hours"))
    if not np.nansum(known.numbers["gpu_hours"]) > 0:
        return []
    parts: Parts = []
    for column, head in (("category", "Category"), ("user", "User"), ("project", "Project")):
        if known.knows(column).any():
            parts.append(_cost_by(known, column, head))
    hours = known.sums("category", "gpu_hours")
    order = sorted((hour for hour in hours if hours[hour] > 0), key=lambda hour: -hours[hour])[
        :MOST_ROWS
    ]
    whole = sum(hours.values())
    shares = {"GPU time": [hours[text] / whole for text in order]}
    labels = [_title(text) for text in order]
    return [*parts, bars("cost-figure", "Cost by category", labels, shares, axis="% of GPU time")]


def _cost_by(known: FailureCorpus, column: str, head: str) -> Table:
    counts, hours = known.counts(column), known.sums(column, "gpu_hours")
    whole = float(known.numbers["gpu_hours"].sum())
    rows = [
        (_title(word), n, hours[word], hours[word] / whole, hours[word] / n)
        for word, n in sorted(counts.items(), key=lambda pair: (-hours[pair[0]], pair[0]))
    ]
    columns = (
        Column(head), Column("No.", "count"), Column("GPU h", "number", cases="No."),
        Column("% of GPU time", "share", cases="No."),
        Column("GPU h a failure", "number", cases="No."),
    )  # fmt: skip
    return Table(f"cost-{column}", f"Cost by {head.lower()}", columns, tuple(rows),
                 sum(counts.values()), most=MOST_ROWS)  # fmt: skip


def repeated(corpus: FailureCorpus) -> Parts:
    """Jobs of one user and name that failed with the same fingerprint, and the cost of the repetitions."""
    known = corpus.where(
        corpus.knows("fingerprint") & (corpus.knows("user") | corpus.knows("name"))
    )
    if not len(known):
        return []
    keys = np.stack([known.codes[name] for name in _SAME], axis=1)
    groups, of_case, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    repeat = _is_repeat(of_case, np.nan_to_num(known.numbers["time"]))
    hours = np.nan_to_num(known.numbers["gpu_hours"]) * repeat
    repeats = int(repeat.sum())
    summary = (
        f"{repeats:,} of {len(known):,} failures ({100 * repeats / len(known):.1f} %) repeat an "
        "earlier one of the same user and the same name of the job"
    )
    if known.knows("gpu_hours").any():
        summary += f", and took {hours.sum():,.1f} GPU hours"
    wasted = np.bincount(of_case, hours, minlength=len(groups))
    order = [at for at in np.lexsort((-wasted, -counts)) if counts[at] > 1]
    rows = [_repeated_row(known, groups[at], int(counts[at]), float(wasted[at])) for at in order]
    columns = (
        Column("Failure"), Column("User"), Column("Job's name"), Column("Times", "count"),
        Column("GPU h of repeats", "number", cases="Times"), Column("Fingerprint", "identity"),
    )  # fmt: skip
    table = Table("repeated", "The same failure again", columns, tuple(rows), len(known),
                  most=MOST_ROWS)  # fmt: skip
    return [f"{summary}.", table] if rows else [f"{summary}."]


_SAME = ("fingerprint", "user", "name")


def _is_repeat(group: NDArray[np.int64], time: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return all but the first in time of each group."""
    order = np.lexsort((time, group))
    repeat = np.zeros(len(group), bool)
    repeat[order[1:]] = group[order][1:] == group[order][:-1]
    return repeat


def _repeated_row(known: FailureCorpus, codes: NDArray[np.int32], times: int, hours: float) -> Row:
    fingerprint, user, name = (
        known.words[column][code] for column, code in zip(_SAME, codes, strict=True)
    )
    example = known.examples.get(fingerprint)
    spent = hours if known.knows("gpu_hours").any() else None
    title = example.title if example else None
    return title or None, user or None, name or None, times, spent, fingerprint


def retried(attempts: FailureCorpus) -> Parts:
    """For jobs that finally failed: what retries achieved.

    Args:
        attempts: all failed attempts of these jobs, not only the last ones.
    """
    jobs, number = attempts.codes["job"], attempts.numbers["attempt"]
    again = attempts.where((jobs != 0) & (number > 1))
    if not len(again):
        return []
    before = _category_before(attempts)
    numbers = zip(again.codes["job"].tolist(), again.numbers["attempt"].tolist(), strict=True)
    same = again.codes["category"] == np.array([before.get((job, n - 1), -1) for job, n in numbers])
    counts, hours = again.counts("category"), again.sums("category", "gpu_hours")
    of_same = again.where(same).counts("category")
    knows_cost = bool(again.knows("gpu_hours").any())
    rows = [
        (
            _title(word), n, of_same.get(word, 0), of_same.get(word, 0) / n,
            hours[word] if knows_cost else None,
        )
        for word, n in counts.items()
    ]  # fmt: skip
    columns = (
        Column("Category"), Column("Retries", "count"),
        Column("Failed as before", "count"), Column("%", "share", cases="Retries"),
        Column("GPU h wasted", "number", cases="Retries"),
    )  # fmt: skip
    started = len(np.unique(again.codes["job"]))
    summary = f"{len(again):,} retries of {started:,} jobs were in vain: the jobs failed in the end"
    if knows_cost:
        summary += f". They took {np.nansum(again.numbers['gpu_hours']):,.1f} GPU hours"
    table = Table("retries", "Retries that failed too", columns, tuple(rows), len(again), "retries")
    return [f"{summary}.", table]


def _category_before(attempts: FailureCorpus) -> dict[tuple[int, float], int]:
    columns = (attempts.codes["job"], attempts.numbers["attempt"], attempts.codes["category"])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(job, number): category for job, number, category in rows}


# When


def time_to_failure(corpus: FailureCorpus) -> Parts:
    """Minutes from start to failure by category, and the cumulative share of failures."""
    known = corpus.where(corpus.knows("seconds"))
    if not len(known):
        return []
    minutes = known.numbers["seconds"] / 60
    rows: list[Row] = []
    for word, n in known.counts("category").items():
        of_word = minutes[known.is_word("category", word)]
        low, middle, high = (float(value) for value in np.quantile(of_word, (0.25, 0.5, 0.75)))
        rows.append((_title(word), n, low, middle, high, float(of_word.max())))
    numbers = ("1st quartile, min", "Median, min", "3rd quartile, min", "Longest, min")
    columns = (
        Column("Category"), Column("No.", "count"),
        *(Column(title, "number", cases="No.") for title in numbers),
    )  # fmt: skip
    table = Table("time", "Time to failure", columns, tuple(rows), len(known))
    return [table, _failed_by_then(known, np.maximum(minutes, 1 / 60))]


def _failed_by_then(known: FailureCorpus, minutes: NDArray[np.float64]) -> Figure:
    """The distribution of minutes by dimension; large samples are thinned to what is visible."""
    dimension = _dimension_of(known)
    series: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for word in taxonomy.dimensions():
        times = np.sort(minutes[dimension == word])
        if times.size:
            at = np.unique(np.linspace(0, times.size - 1, min(times.size, 400)).astype(int))
            up = 100 * (at + 1) / times.size
            title = f"{_title(word)} (n = {times.size:,})"
            series[title] = (times[at].tolist(), up.tolist())
    alt = f"Cumulative share of failures over time; half of all failures occur within {np.median(minutes):,.3g} minutes."
    return cumulative(
        "time-figure", "Failed by then", series,
        x="minutes since the start", y="% of failures", alt=alt,
    )  # fmt: skip


def weeks(corpus: FailureCorpus) -> Parts:
    """Failures by ISO 8601 week (UTC) and dimension, newest first."""
    known = corpus.where(corpus.knows("time"))
    if not len(known):
        return []
    mondays = np.array([_monday(time) for time in known.numbers["time"].tolist()])
    dimension = _dimension_of(known)
    pairs = Counter(zip(mondays.tolist(), dimension.tolist(), strict=True))
    order = [word for word in taxonomy.dimensions() if (dimension == word).any()]
    every = _every_week(mondays.tolist())
    heads = [_title(word) for word in order]
    rows: list[Row] = []
    for monday in reversed(every):
        counts = [pairs[monday, word] for word in order]
        rows.append((monday.isoformat(), *counts, sum(counts)))
    columns = (
        Column("Week from"), *(Column(head, "count", cases=head) for head in heads),
        Column("All", "count", cases="All"),
    )  # fmt: skip
    table = Table("weeks", "Failures by week", columns, tuple(rows), len(known), most=MOST_ROWS)
    counts_of = {
        head: [pairs[monday, word] for monday in every]
        for head, word in zip(heads, order, strict=True)
    }
    alt = f"Failures per week from {every[0]} to {every[-1]}, with one chart per dimension."
    drawn = panels(
        "weeks-figure", "Failures by week", every, counts_of, y="failures a week", alt=alt
    )
    return [table, drawn]


def _monday(time: float) -> date:
    day = datetime.fromtimestamp(time, UTC).date()
    return day - timedelta(days=day.weekday())


def _every_week(mondays: Iterable[date]) -> list[date]:
    """Return all weeks from the first to the last, including empty ones."""
    first, last = min(mondays), max(mondays)
    return [first + timedelta(weeks=n) for n in range((last - first).days // 7 + 1)]


# Which ones


def fingerprints(corpus: FailureCorpus) -> Parts:
    """The most frequent failures, each with its root line and advice."""
    known = corpus.where(corpus.knows("fingerprint"))
    if not len(known):
        return []
    hours = known.sums("fingerprint", "gpu_hours")
    knows_cost = sum(hours.values()) > 0
    rows: list[Row] = []
    for fingerprint, n in known.counts("fingerprint").items():
        example = known.examples.get(fingerprint)
        details = (example.title, redact(example.line), example.fix) if example else ("", "", "")
        spent = (hours[fingerprint],) if knows_cost else ()
        rows.append((n, *spent, *(text or None for text in details), fingerprint))
    columns = (
        Column("No.", "count", cases="No."), *((Column("GPU h", "number"),) if knows_cost else ()),
        Column("Failure"), Column("For example", "code"), Column("What to do"),
        Column("Fingerprint", "identity"),
    )  # fmt: skip
    note = f"{len(rows):,} different failures; secrets in lines are hidden."
    return [Table("fingerprints", "The most frequent failures", columns, tuple(rows), len(known),
                  notes=(note,), most=MOST_ROWS)]  # fmt: skip


def caught(corpus: FailureCorpus) -> Parts:
    """Failures that a check predicts, by category."""
    found = corpus.where(corpus.knows("caught_by"))
    if not len(found):
        return []
    counts, of_found = corpus.counts("category"), found.counts("category")
    rules: dict[str, Counter[str]] = {}
    for word, rule in zip(found.texts("category"), found.texts("caught_by"), strict=True):
        rules.setdefault(word, Counter())[rule] += 1
    rows: list[Row] = []
    for word, n in counts.items():
        m = of_found.get(word, 0)
        names = ", ".join(rule for rule, _ in rules.get(word, Counter()).most_common(3))
        rows.append((_title(word), n, m, m / n, wilson(m, n), names))
    whole = len(corpus)
    rows.append(("Total", whole, len(found), len(found) / whole, wilson(len(found), whole), ""))
    columns = (
        Column("Category"), Column("No.", "count"), Column("Caught", "count"), _SHARE, _INTERVAL,
        Column("By the rules", "code"),
    )  # fmt: skip
    note = "Caught: a check of the job, before or after it ran, reports a finding in the failure's category."
    return [Table("caught", "What a check reports before the job runs", columns, tuple(rows), whole,
                  notes=(note,))]  # fmt: skip


# Words


_TITLES: tuple[Callable[[], Mapping[str, taxonomy.Term]], ...] = (
    taxonomy.categories, taxonomy.dimensions, taxonomy.root_causes, taxonomy.phases,
)  # fmt: skip


def _title(word: str) -> str:
    """Return the title of a word of the taxonomy; any other word unchanged."""
    for vocabulary in _TITLES:
        if word in vocabulary():
            return vocabulary()[word].title
    return word


def _dimension_of(corpus: FailureCorpus) -> NDArray[np.str_]:
    """Return the dimension of each failure."""
    known = taxonomy.categories()
    words = [known[w].dimension if w in known else "" for w in corpus.words["category"]]
    return np.array(words)[corpus.codes["category"]]
