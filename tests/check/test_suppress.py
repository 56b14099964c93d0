"""Suppressions: what they cover, and that none is without a reason or a use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import check
from epochzero.check.findings import Finding, SourceLocation
from epochzero.check.settings import CheckSettings
from epochzero.check.suppress import UNUSED, WITHOUT_REASON, apply, suppressions

RULE = "undefined-name"
ABOUT = (UNUSED, WITHOUT_REASON)


def finding(line: int, rule: str = RULE, path: str = "train.py") -> Finding:
    return Finding(
        rule, "error", "undefined_variable", "training", SourceLocation(path, line), "m", "c", "f"
    )


def applied(text: str, *lines: int, path: str = "train.py") -> tuple[list[str], list[str]]:
    """Rules that remain, and reasons of what was suppressed, of findings at these lines."""
    found = [finding(line, path=path) for line in lines]
    kept, suppressed = apply(found, suppressions(path, text), CheckSettings(), [RULE, *ABOUT])
    return [one.rule for one in kept], [reason for _, reason in suppressed]


MARK = f"# epochzero: ignore[{RULE}]"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"x = y  {MARK} set by exec\n", 1),
        (f"x = y  #epochzero:ignore[ {RULE} ]   set by exec\n", 1),
        (f"x = y  # noqa  {MARK} set by exec\n", 1),
        (f"{MARK} set by exec\nx = y\n", 2),
        (f"f(\n    a,\n    y,\n)  {MARK} set by exec\n", 3),
        (f"f(\n    a,\n    y,  {MARK} set by exec\n)\n", 1),
        (f"if a:\n    {MARK} set by exec\n    f(\n        y,\n    )\n", 4),
        (f"x = y  # epochzero: ignore[module-missing, {RULE}] set by exec\n", 1),
    ],
)
def test_a_comment_with_a_reason_takes_the_finding_of_its_statement_away(
    text: str, line: int
) -> None:
    assert applied(text, line) == ([], ["set by exec"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"x = y  {MARK} why\nx = y\n", 2),
        (f"{MARK} why\n\n\nx = y\n", 4),
        (f"x = '{MARK} why'; y\n", 1),
        (f'"""\n{MARK} why\n"""\ny\n', 4),
    ],
)
def test_other_statements_are_not_covered(text: str, line: int) -> None:
    kept, suppressed = applied(text, line)
    assert kept[0] == RULE
    assert suppressed == []


def test_without_a_reason_the_finding_stays_and_the_comment_is_told_of() -> None:
    assert applied(f"x = y  {MARK}\n", 1) == ([RULE, WITHOUT_REASON], [])
    assert applied("x = y  # epochzero: ignore[] why\n", 1) == ([RULE, WITHOUT_REASON], [])


def test_a_suppression_that_suppresses_nothing_is_told_of() -> None:
    assert applied(f"x = 1  {MARK} why\n") == ([UNUSED], [])
    assert applied("x = 1  # epochzero: ignore[undefined-nam] why\n") == ([UNUSED], [])
    # The rule was not asked, so it may still be needed.
    assert applied("x = 1  # epochzero: ignore[module-missing] why\n") == ([], [])


def test_what_is_told_of_suppressions_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"x = 1  {MARK} why\nprint(x)  {MARK}\n")
    told = [one.rule for one in check(["python", "train.py"], folder=tmp_path).findings]
    assert set(told) == set(ABOUT)
    assert not check(["python", "train.py"], folder=tmp_path, ignore=ABOUT).findings
    assert not check(["python", "train.py"], folder=tmp_path, select=[RULE]).findings


def test_in_a_shell_script_each_line_stands_alone() -> None:
    text = f"python train.py {MARK} why\npython eval.py\n"
    assert applied(text, 1, path="run.sh") == ([], ["why"])
    assert applied(text, 2, path="run.sh") == ([RULE, UNUSED], [])


def test_the_settings_take_findings_away_too() -> None:
    kept, suppressed = apply(
        [finding(1), finding(1, "syntax-error"), finding(1, path="old/a.py")],
        [],
        CheckSettings(per_file_ignores={"train.py": ("syntax-error",)}, exclude=("old",)),
        [RULE],
    )
    assert kept == [finding(1)]
    assert [reason for _, reason in suppressed] == [
        "pyproject.toml: per-file-ignores train.py",
        "pyproject.toml: exclude old",
    ]


@given(
    st.text(alphabet="#epochzero: ignore[]xy\n'\"()\\\t", max_size=200),
    st.sampled_from(["py", "sh"]),
)
def test_any_text_can_be_read(text: str, suffix: str) -> None:
    for one in suppressions(f"a.{suffix}", f"{text}\n{MARK} why\n"):
        assert one.place.line >= 1
        assert one.first <= one.last
