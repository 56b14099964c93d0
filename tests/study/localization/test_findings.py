"""The report of localization: groups, verdicts and what is said where nothing can be told."""

from __future__ import annotations

import random
from typing import Any

import pytest

from epochzero.locate.techniques import TECHNIQUES as TECHNIQUES_OF_PACKAGE
from epochzero.reports.page import to_html
from epochzero.study.localization.findings import HOLDS, HOLDS_NOT, OPEN, findings
from epochzero.study.localization.pairs import pairs
from epochzero.study.localization.ranks import Ranked
from epochzero.study.localization.study import study_localization
from epochzero.study.localization.subjects import DEEP_LEARNING, TRADITIONAL, StudyBug
from epochzero.study.localization.systems import alike_subsets, sides

TECHNIQUES = ("buglocator", "bluir", "blia")


def subject(number: int, **fields: Any) -> StudyBug:
    precision = fields.pop("precision", 0.5)
    given: dict[str, Any] = {
        "id": f"{fields.get('system', DEEP_LEARNING)}{number}", "project": f"p{number % 12}",
        "system": DEEP_LEARNING, "classes": (), "kind": "ndl", "predicted": True, "extrinsic": None,
        "described": True, "lines": 100.0 + number, "complexity": 2.0,
        "ranks": dict.fromkeys(TECHNIQUES, Ranked(round(1 / precision), 9, precision)),
    }  # fmt: skip
    return StudyBug(**{**given, **fields})


def systems_of(deep: float, other: float, n: int = 60) -> list[StudyBug]:
    """Two kinds of systems with a mean average precision each."""
    draw = random.Random(0)
    return [
        subject(at, system=system, precision=mean * draw.uniform(0.8, 1.2))
        for system, mean in ((DEEP_LEARNING, deep), (TRADITIONAL, other))
        for at in range(n)
    ]


@pytest.mark.parametrize(
    ("deep", "other", "verdict"), [(0.3, 0.6, HOLDS), (0.6, 0.3, HOLDS_NOT), (0.5, 0.5, OPEN)]
)
def test_an_interval_decides_whether_systems_differ(
    deep: float, other: float, verdict: str
) -> None:
    found = findings(systems_of(deep, other), TECHNIQUES)
    assert [one.verdict for one in found[:2]] == [verdict, verdict]
    assert found[0].n == (60, 60)


def test_titles_are_not_compared_with_whole_reports() -> None:
    bugs = systems_of(0.3, 0.6)
    bugs = [one if one.system == DEEP_LEARNING else subject(n, system=TRADITIONAL, described=False)
            for n, one in enumerate(bugs)]  # fmt: skip
    found = findings(bugs, TECHNIQUES)[0]
    assert (found.verdict, found.value.value is not None) == (OPEN, True)
    assert "only a title" in found.why


def test_a_group_of_few_bugs_is_not_judged() -> None:
    bugs = [subject(n, kind="gpu" if n < 9 else "api", predicted=False, extrinsic=True,
                    precision=0.1 if n < 9 else 0.9) for n in range(40)]  # fmt: skip
    of = {one.text: one for one in findings(bugs, TECHNIQUES)}
    assert of["GPU bugs are the hardest type"].why == "fewer than 10 bugs on one side"
    assert of["Techniques perform worse on deep-learning systems"].verdict == OPEN


def test_matched_subsets_have_as_many_of_either_system() -> None:
    large = [subject(n, system=TRADITIONAL, lines=300.0 + n) for n in range(50)]
    bugs = [subject(n, lines=200.0 + 3 * n) for n in range(80)] + large
    for subset in list(alike_subsets(sides(bugs), 0).values())[1:]:
        assert len(subset[DEEP_LEARNING]) == len(subset[TRADITIONAL]) > 0
    bounded = next(iter(alike_subsets(sides(bugs), 0).values()))
    assert all(170 <= one.lines <= 284 for side in bounded.values() for one in side)


def test_the_report_marks_few_bugs_and_says_what_is_missing() -> None:
    bugs = [subject(n, classes=("tool",), kind="gpu", predicted=False, extrinsic=n < 4) for n in range(12)]  # fmt: skip
    studied = study_localization(bugs, TECHNIQUES, {"no clone of its project exists": 3})
    names = {table.name for table in studied.report.tables}
    assert {"systems", "classes", "types", "extrinsic", "findings", "data"} <= names
    assert "gaps" not in names
    page = to_html(studied.report)
    assert "based on fewer than 30 bugs" in page
    assert "“Files that are alike” is left out: all bugs are of one kind of system" in page
    assert "Left out: no clone of its project exists" in page
    assert "0.371" in page, "the published value stands beside"
    assert "9 and 12 bugs" in page, "and what its files give"
    assert studied.summary["techniques"]["blia"][DEEP_LEARNING]["bugs"] == 12


def test_rankings_of_elsewhere_stand_beside_the_others_on_the_same_bugs() -> None:
    bugs = [subject(n) for n in range(20)]
    bugs = [subject(n, ranks={**one.ranks, "tarantula": Ranked(2, 2, 0.5)}) if n < 5 else one
            for n, one in enumerate(bugs)]  # fmt: skip
    studied = study_localization(bugs, TECHNIQUES, {}, external=["tarantula"])
    table = next(one for one in studied.report.tables if one.name == "external")
    assert [row[1:3] for row in table.rows] == [(name, 5) for name in ("tarantula", *TECHNIQUES)]


def test_no_bug_is_a_report_too() -> None:
    studied = study_localization([], TECHNIQUES, {"its fix is unknown": 2})
    assert "No bug could be localized" in to_html(studied.report)
    assert studied.summary["findings"] == []


def test_trained_techniques_are_judged_on_projects_that_they_were_not_trained_on() -> None:
    known = next(iter(TECHNIQUES_OF_PACKAGE["dnnloc"].training_projects()))
    names = (*TECHNIQUES, "dnnloc")
    better = dict.fromkeys(TECHNIQUES, Ranked(2, 9, 0.5)) | {"dnnloc": Ranked(1, 1, 0.9)}
    fresh = [subject(n, ranks=better) for n in range(30)]
    used = [subject(n, ranks=better, project=known.upper()) for n in range(30, 60)]
    found = findings([*fresh, *used], names)[-1]
    assert (found.verdict, found.n) == (HOLDS, (30, 30))
    refused = findings(used, names)[-1]
    assert refused.verdict == OPEN
    assert "were trained on other bugs" in refused.why


def test_pairs_of_techniques_are_compared_on_the_same_bugs() -> None:
    from scipy.stats import wilcoxon

    bugs = [
        subject(n, ranks={"bm25": Ranked(2, 2, 0.4), "blia": Ranked(1, 1, 0.4 + n / 100)})
        for n in range(40)
    ]
    (table,) = pairs(bugs, ("bm25", "blia", "bluir"), 0)
    ((first, second, n, mean, _, p, adjusted, size, word),) = table.rows
    assert (first, second, n, size, word) == ("bm25", "blia", 40, -1.0, "large")
    assert mean == pytest.approx(-0.195)
    assert p == adjusted == pytest.approx(wilcoxon([-n / 100 for n in range(40)]).pvalue)


def test_the_note_names_what_the_bootstrap_draws() -> None:
    few = [subject(n, project=f"p{n % 3}") for n in range(20)]
    page = to_html(study_localization(few, TECHNIQUES, {}).report)
    assert "resample bugs, because there are fewer than ten projects" in page
    assert "resample whole projects" in to_html(
        study_localization([subject(n) for n in range(20)], TECHNIQUES, {}).report
    )
