"""Agreement of diagnoses with labels by people, and of people with each other."""

from __future__ import annotations

from epochzero import taxonomy
from epochzero.reports.figures import heat
from epochzero.reports.statistics import (
    RESAMPLES,
    ClassAgreement,
    Estimate,
    agreement,
    class_scores,
)
from epochzero.reports.tables import FEW, Column, Row, Table
from epochzero.study.analyses import MOST_ROWS, Parts
from epochzero.study.corpora import FailureCorpus

WORDS = ("category", "root_cause", "phase", "retry")


def agreement_by_word(corpus: FailureCorpus, seed: int = 0) -> dict[str, ClassAgreement]:
    """Compute the agreement of label and diagnosis for each labeled word; unknown labels do not count.

    Args:
        corpus: with labels, including logs that show no failure.
        seed: of the bootstrap, which draws whole projects if they are known.
    """
    found: dict[str, ClassAgreement] = {}
    for word in WORDS:
        label = f"label_{word}"
        known = corpus.where(corpus.knows(label) & ~corpus.is_word(label, "unknown"))
        if len(known):
            found[word] = _agreement(known, label, word, seed)
    both = corpus.where(corpus.knows("label_category") & corpus.knows("label_second"))
    if len(both):
        found["annotators"] = _agreement(both, "label_category", "label_second", seed)
    return found


def _agreement(known: FailureCorpus, true: str, predicted: str, seed: int) -> ClassAgreement:
    projects = known.texts("project")
    groups = projects if known.knows("project").all() and len({*projects}) >= FEW else None
    return agreement(known.texts(true), known.texts(predicted), groups, seed=seed)


def labels(corpus: FailureCorpus, found: dict[str, ClassAgreement]) -> Parts:
    """Report accuracy, macro-F1 and kappa of each word, and classes and confusions of the category."""
    if not found:
        return []
    rows: list[Row] = []
    for word, measured in found.items():
        title = "two annotators, category" if word == "annotators" else word.replace("_", " ")
        estimates = (measured.accuracy, measured.macro_f1, measured.kappa)
        rows.append((title, measured.n, *(cell for e in estimates for cell in _cells(e))))
    columns = [Column("What"), Column("Labelled", "count")]
    for title in ("Accuracy", "Macro-F1"):
        columns.append(Column(title, "share", cases="Labelled"))
        columns.append(Column(f"{title}, 95 %", "interval", cases="Labelled"))
    columns.append(Column("Cohen's kappa", "number", cases="Labelled"))
    columns.append(Column("Kappa, 95 %", "interval", cases="Labelled", interval_of="number"))
    table = Table("agreement", "Diagnosis and labels", tuple(columns), tuple(rows),
                  max(one.n for one in found.values()), "labelled failures", notes=_notes(corpus, found))  # fmt: skip
    return [table, *_classes(found["category"])] if "category" in found else [table]


def _cells(estimate: Estimate) -> tuple[float | None, tuple[float, float] | None]:
    return estimate.value, estimate.interval


def _notes(corpus: FailureCorpus, found: dict[str, ClassAgreement]) -> tuple[str, ...]:
    notes = [
        f"Confidence intervals are from {RESAMPLES:,} bootstrap samples, of whole projects if there are {FEW} or more."
    ]
    if "category" in found:
        labelled = corpus.where(corpus.knows("label_category"))
        words = zip(*(labelled.texts(c) for c in ("category", "label_category", "label_also")), strict=True)  # fmt: skip
        accepted = sum(
            predicted == true or predicted in also.split() for predicted, true, also in words
        )
        share = 100 * accepted / len(labelled)
        notes.append(
            f"If the other categories that a label allows also count, {accepted:,} of {len(labelled):,} are correct ({share:.1f} %)."
        )
    if any(measured.kappa.value is None for measured in found.values()):
        notes.append("Kappa is undefined if both always use the same class.")
    return tuple(notes)


def _classes(measured: ClassAgreement) -> Parts:
    titles = [taxonomy.categories()[name].title for name in measured.classes]
    rows: list[Row] = [
        (title, s.true, s.predicted, s.precision, s.recall, s.f1)
        for title, s in zip(titles, class_scores(measured.classes, measured.matrix), strict=True)
    ]
    columns = (
        Column("Category"), Column("Labelled", "count"), Column("Diagnosed", "count"),
        Column("Precision", "share", cases="Diagnosed"), Column("Recall", "share", cases="Labelled"),
        Column("F1", "share", cases="Labelled"),
    )  # fmt: skip
    classes = Table(
        "classes", "Each category", columns, tuple(rows), measured.n, "labelled failures"
    )
    counts = [[int(value) for value in row] for row in measured.matrix]
    drawn = heat("confusion-figure", "Confusion matrix", titles, titles, counts,
                 down="label", across="diagnosis")  # fmt: skip
    return [classes, drawn, _confused(titles, counts)]


def _confused(titles: list[str], counts: list[list[int]]) -> Table:
    """Return the nonempty cells of the confusion matrix, errors first."""
    pairs = [
        (label, predicted, count, label == predicted)
        for label, row in zip(titles, counts, strict=True)
        for predicted, count in zip(titles, row, strict=True)
        if count
    ]
    pairs.sort(key=lambda pair: (pair[3], -pair[2]))
    columns = (Column("Label"), Column("Diagnosis"), Column("No.", "count", cases="No."))
    rows = tuple((label, predicted, count) for label, predicted, count, _ in pairs)
    return Table("confusion", "Confusions, errors first", columns, rows,
                 sum(pair[2] for pair in pairs), "labelled failures", most=MOST_ROWS)  # fmt: skip
