"""Tarantula and Ochiai against values worked out by hand from the papers' formulas."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code import Unit
from epochzero.errors import InputError
from epochzero.locate.techniques.spectrum import (
    FORMULAS,
    Formula,
    Run,
    ochiai,
    read_coverage,
    suspicious_files,
    suspicious_functions,
    suspicious_lines,
    tarantula,
)

# The running example of Jones and Harrold 2005, Figure 1: the middle of three numbers, with the
# fault in statement 7. Which of 13 statements each of six inputs reaches:
ALWAYS = {1, 2, 3, 13}
REACHED = {
    "3 3 5": ALWAYS | {4, 6, 7},
    "1 2 3": ALWAYS | {4, 5},
    "3 2 1": ALWAYS | {8, 9, 10},
    "5 5 5": ALWAYS | {8, 9, 11},
    "5 3 4": ALWAYS | {4, 6},
    "2 1 3": ALWAYS | {4, 6, 7},
}
MIDDLE = [
    Run(name, name != "2 1 3", {"mid.py": frozenset(lines)}) for name, lines in REACHED.items()
]


def test_tarantula_gives_the_numbers_of_its_paper() -> None:
    found = {item.start: round(item.score, 2) for item in suspicious_lines(MIDDLE, tarantula)}
    # The paper prints 0.63 for 4: 1 / (1 + 3 / 5).
    assert found == {7: 0.83, 6: 0.71, 4: 0.62, 1: 0.5, 2: 0.5, 3: 0.5, 13: 0.5}


def test_ochiai_is_the_cosine_of_covering_and_failing() -> None:
    found = {item.start: item.score for item in suspicious_lines(MIDDLE, ochiai)}
    always = 1 / math.sqrt(6)
    expected = {7: 1 / math.sqrt(2), 6: 1 / math.sqrt(3), 4: 1 / 2} | dict.fromkeys(ALWAYS, always)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("formula", FORMULAS.values())
def test_the_fault_comes_first_with_its_reason(formula: Formula) -> None:
    first = suspicious_lines(MIDDLE, formula)[0]
    assert (first.path, first.start, first.end) == ("mid.py", 7, 7)
    assert first.reasons[0].text == "covered by 1 of 1 failing and 1 of 5 passing runs"


@pytest.mark.parametrize("formula", FORMULAS.values())
def test_what_no_failing_run_covers_is_not_suspected(formula: Formula) -> None:
    assert not {5, 8, 9, 10, 11, 12} & {i.start for i in suspicious_lines(MIDDLE, formula)}


def test_several_failing_runs_make_a_difference() -> None:
    runs = [
        Run("f1", False, {"m.py": frozenset({1, 2})}),
        Run("f2", False, {"m.py": frozenset({1})}),
        Run("p1", True, {"m.py": frozenset({1})}),
        Run("p2", True, {}),
        Run("p3", True, {}),
        Run("p4", True, {}),
    ]
    first = {i.start: i.score for i in suspicious_lines(runs, tarantula)}
    assert first == pytest.approx({1: 1 / (1 + 1 / 4), 2: 1})
    second = {i.start: i.score for i in suspicious_lines(runs, ochiai)}
    assert second == pytest.approx({1: 2 / math.sqrt(2 * 3), 2: 1 / math.sqrt(2 * 1)})


@pytest.mark.parametrize("formula", FORMULAS.values())
def test_when_everything_fails_what_is_covered_always_is_as_suspicious_as_can_be(
    formula: Formula,
) -> None:
    runs = [Run("a", False, {"m.py": frozenset({1})}), Run("b", False, {"m.py": frozenset({1})})]
    assert [item.score for item in suspicious_lines(runs, formula)] == [1]


def test_without_a_failing_run_there_is_nothing_to_say() -> None:
    with pytest.raises(InputError, match="no run fails"):
        suspicious_lines([Run("a", True, {"m.py": frozenset({1})})])


def test_functions_and_files_are_as_suspicious_as_their_worst_line() -> None:
    units = {
        "mid.py": [
            Unit("function", "mid", "mid", 2, 13),
            Unit("function", "inner", "mid.inner", 6, 7),
        ]
    }
    runs = [*MIDDLE, Run("other", True, {"other.py": frozenset({1})})]
    functions = suspicious_functions(runs, units, tarantula)
    assert [(i.unit, i.start, i.end, round(i.score, 2)) for i in functions] == [
        ("mid.inner", 6, 7, 0.86),
        ("mid", 2, 13, 0.67),
    ]
    files = suspicious_files(runs, tarantula)
    assert [(i.path, i.start, round(i.score, 2)) for i in files] == [("mid.py", 0, 0.86)]


# -- coverage.py's report ----------------------------------------------------------------------


def report(**files: dict[str, list[str]]) -> str:
    return json.dumps(
        {
            "meta": {"format": 3, "show_contexts": True},
            "files": {
                f"pkg\\{name}.py": {"executed_lines": [], "contexts": contexts}
                for name, contexts in files.items()
            },
        }
    )


def test_contexts_become_runs_and_the_phases_of_a_test_are_one() -> None:
    good, bad = "tests/test_m.py::test_good", "tests/test_m.py::test_bad[2]"
    text = report(
        m={"1": [""], "2": [f"{good}|run", f"{bad}|setup"], "3": [f"{bad}|run"]},
        n={"7": ["", f"{good}|teardown"]},
    )
    assert read_coverage(text, [bad]) == (
        Run(bad, False, {"pkg/m.py": frozenset({2, 3})}),
        Run(good, True, {"pkg/m.py": frozenset({2}), "pkg/n.py": frozenset({7})}),
    )


def test_a_failed_test_that_covers_nothing_counts_all_the_same() -> None:
    runs = read_coverage(report(m={"1": ["a"]}), ["a", "b"])
    assert runs[1] == Run("b", False, {})
    assert suspicious_lines(runs)[0].score == pytest.approx(1 / math.sqrt(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON report"),
        ('{"files": 3}', "not a JSON report"),
        ('{"files": {"m.py": 3}}', "no valid entry for 'm.py'"),
        ('{"files": {"m.py": {"contexts": [1]}}}', "no valid entry for 'm.py'"),
        ('{"files": {"m.py": {"contexts": {"x": ["a"]}}}}', "damaged at 'm.py', line 'x'"),
        ('{"files": {"m.py": {"contexts": {"1": "a"}}}}', "damaged at 'm.py', line '1'"),
        ('{"files": {"m.py": {"executed_lines": [1]}}}', "has no contexts: .*--show-contexts"),
        ('{"files": {"m.py": {"contexts": {"1": [""]}}}}', "has no contexts"),
        ('{"files": {"m.py": {"contexts": {"1": ["b"]}}}}', "none of 1 failed test .* is 'b'"),
    ],
)
def test_what_cannot_be_used_is_said(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_coverage(text, ["a"])


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(["files", "contexts", "1", "a"]), inside, max_size=3)
    ),
)


@given(st.text() | ANYTHING.map(json.dumps) | ANYTHING.map(lambda x: json.dumps({"files": x})))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        assert all(isinstance(run, Run) for run in read_coverage(text, ["a"]))


def test_the_reason_of_a_file_names_the_line_that_it_is_of() -> None:
    """Passing runs executed the file, and not the line."""
    runs = [
        Run("bad", False, {"m.py": frozenset({1, 2})}),
        Run("good", True, {"m.py": frozenset({1})}),
    ]

    (found,) = suspicious_files(runs)

    assert found.reasons[0].text == (
        "line 2, the most suspicious one: covered by 1 of 1 failing and 0 of 1 passing runs"
    )
