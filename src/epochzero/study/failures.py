"""The study of failures: from a corpus to its report.

The questions are those of Zhang et al., "An Empirical Study on Program Failures of Deep Learning Jobs"
(ICSE 2020): what fails, why, in which phase, at what cost; and, for a platform, which failures recur.
The section "Data" names what the corpus lacks; the analyses that need it are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from epochzero import taxonomy
from epochzero.reports.figures import require_matplotlib
from epochzero.reports.page import ReportPage, Section, StudyResult
from epochzero.reports.statistics import ClassAgreement, wilson
from epochzero.reports.tables import Column, Row, Table
from epochzero.study import analyses
from epochzero.study.corpora import NOT_A_FAILURE, FailureCorpus
from epochzero.study.labels import agreement_by_word, labels
from epochzero.study.published import zhang2020

SCHEMA = "epochzero.study.failures/1"

_SECTIONS: tuple[tuple[str, Callable[[FailureCorpus], analyses.Parts], str], ...] = (
    ("Dimensions", analyses.dimensions, ""),
    ("Categories", analyses.categories, ""),
    ("Root causes", analyses.causes, "no root causes are known"),
    ("Phases", analyses.phases, "no phases are known"),
    ("Cost", analyses.cost, "no GPU times are known"),
    (
        "Repeated failures",
        analyses.repeated,
        "no record has a fingerprint and also a user or a job name",
    ),
    ("Retries", analyses.retried, "no job was restarted"),
    ("Time to failure", analyses.time_to_failure, "the run times of the jobs are unknown"),
    ("Trend", analyses.weeks, "the times of the failures are unknown"),
    ("Most frequent failures", analyses.fingerprints, "no fingerprint is known"),
    ("Checking", analyses.caught, "no known finding of a check predicts a failure"),
)
"""Title, analysis, and what is missing if it returns nothing."""


def study_failures(corpus: FailureCorpus, *, seed: int = 0) -> StudyResult:
    """Count, compare and plot the failures of a corpus.

    Raises:
        InputError: matplotlib is not installed.
    """
    require_matplotlib()
    failures = corpus.failures()
    sections: list[Section] = []
    missing: dict[str, str] = {}
    for title, analysis, without in _SECTIONS if len(failures) else ():
        # The effect of retries is visible in all attempts of those jobs.
        of = corpus.attempts_of_failed() if analysis is analyses.retried else failures
        if parts := analysis(of):
            sections.append(Section(title, parts))
        else:
            missing[title] = without
    agreed = agreement_by_word(corpus, seed)
    if parts := labels(corpus, agreed):
        sections.append(Section("Labels", parts))
    else:
        missing["Labels"] = "no failure is labeled"
    data = _data(corpus, failures, missing)
    report = ReportPage(f"Failures in {corpus.source}", _lead(corpus, failures), (*sections, data))
    return StudyResult(report, _summary(corpus, failures, missing, agreed))


def _lead(corpus: FailureCorpus, failures: FailureCorpus) -> str:
    if not len(failures):
        return f"None of the {corpus.read:,} records read is a failure."
    counts = failures.counts("category")
    first = [
        f"{taxonomy.categories()[word].title} ({100 * n / len(failures):.1f} %)"
        for word, n in list(counts.items())[:3]
    ]
    lead = f"{len(failures):,} failures of {len(counts)} categories; most often {', '.join(first)}."
    hours = float(np.nansum(failures.numbers["gpu_hours"]))
    if hours:
        lead += f" They took {hours:,.0f} GPU hours."
    return f"{lead} The tables compare them with {zhang2020().short}, where that study has numbers."


def _data(corpus: FailureCorpus, failures: FailureCorpus, missing: Mapping[str, str]) -> Section:
    """Report what was read and excluded, and why analyses are missing."""
    rows: list[Row] = [("Read", corpus.read)]
    rows += [(f"Left out: {why}", count) for why, count in sorted(corpus.left_out.items())]
    ended_well = int(corpus.is_word("category", NOT_A_FAILURE).sum())
    rows += [
        ("Succeeded", ended_well),
        (
            "Earlier attempts of restarted jobs",
            len(corpus) - ended_well - len(failures),
        ),
        ("Failures studied", len(failures)),
    ]
    columns = (Column("Records"), Column("No.", "count"))
    parts: list[Any] = [
        Table("data", "What was read", columns, tuple(row for row in rows if row[1]), corpus.read,
              "records"),
    ]  # fmt: skip
    if corpus.notes:
        odd: tuple[Row, ...] = tuple(sorted(corpus.notes.items()))
        parts.append(
            Table("unusable", "Invalid fields, counted as unknown",
                  (Column("Field"), Column("No.", "count")), odd, sum(corpus.notes.values()), "fields")
        )  # fmt: skip
    parts += [f"“{title}” is left out: {why}." for title, why in missing.items()]
    parts.append(
        "A failure is the last attempt of a job. Confidence intervals of shares are Wilson intervals (1927). "
        "Categories, phases and root causes come from the diagnosis unless a table says otherwise."
    )
    return Section("Data", parts)


def _summary(
    corpus: FailureCorpus,
    failures: FailureCorpus,
    missing: Mapping[str, str],
    agreed: Mapping[str, ClassAgreement],
) -> dict[str, Any]:
    counts = failures.counts("category")
    of_dimension: dict[str, int] = {}
    for category, n in counts.items():
        dimension = taxonomy.categories()[category].dimension
        of_dimension[dimension] = of_dimension.get(dimension, 0) + n
    hours = failures.knows("gpu_hours").any()
    return {
        "schema": SCHEMA,
        "source": corpus.source,
        "read": corpus.read,
        "failures": len(failures),
        "gpu_hours": float(np.nansum(failures.numbers["gpu_hours"])) if hours else None,
        "left_out": dict(corpus.left_out),
        "unusable": dict(corpus.notes),
        "dimensions": {word: _share(n, len(failures)) for word, n in of_dimension.items()},
        "categories": {word: _share(n, len(failures)) for word, n in counts.items()},
        "phases": failures.counts("phase"),
        "root_causes": failures.counts("root_cause"),
        "agreement": {
            word: {
                "labelled": agreement.n,
                "accuracy": asdict(agreement.accuracy),
                "macro_f1": asdict(agreement.macro_f1),
                "kappa": asdict(agreement.kappa),
            }
            for word, agreement in agreed.items()
        },
        "missing": dict(missing),
    }


def _share(part: int, whole: int) -> dict[str, Any]:
    return {"count": part, "share": part / whole, "interval": wilson(part, whole)}
