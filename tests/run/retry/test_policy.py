"""Policies are data: those that come with EpochZero are right, a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.errors import CatalogError
from epochzero.run.retry.policy import built_in, load_policy

RULE = '\n[[rules]]\ntitle = "all"\nretries = 1\nreason = "so"\n'


@pytest.mark.parametrize("name", built_in())
def test_what_comes_with_epochzero_loads(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.source
    assert policy.title.endswith(".")
    assert all(rule.reason.endswith(".") for rule in policy.rules)


def test_an_own_policy_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "Mine."\nbudget = "job"\nworth_hours = 0' + RULE)
    policy = load_policy(file)
    assert (policy.name, policy.budget, policy.rules[0].retries) == ("mine", "job", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "invalid TOML"),
        ('title = "x"', "has no [[rules]]"),
        (RULE, "mine.toml: missing 1 required positional argument: 'title'"),
        ('title = "x"\nmood = 1' + RULE, "unknown field 'mood'"),
        ('title = "x"\nbudget = "day"' + RULE, "not 'day'"),
        ('title = "x"\nmost = true' + RULE, "most = True is not of type int"),
        ('title = "x"' + RULE.replace("1", "-1"), "rule 1: retries"),
        ('title = "x"' + RULE.replace("1", '"once"'), "rule 1: retries = 'once'"),
        ('title = "x"' + RULE + 'when = { phase = ["lunch"] }', "'lunch' is unknown"),
        ('title = "x"' + RULE + 'when = { mood = ["x"] }', "unknown field 'mood'"),
        ('title = "x"' + RULE + 'when = { phase = "training" }', "is not of type"),
        ('title = "x"' + RULE + "when = { progressed = true }", "the last rule has a `when`"),
        ('title = "x"' + RULE + "chance = 1.5", "chance must be between 0 and 1"),
        ('title = "x"\npasses = 1.0' + RULE, "passes must be between 0 and 1"),
        ('title = "x"\nevidence = { moon = 2 }' + RULE, "unknown evidence 'moon'"),
        ('title = "x"\nevidence = { unseeded = 0 }' + RULE, "is not a number above 0"),
        ('title = "x"\nrules = [1]', "rule 1 is not a table"),
    ],
)
def test_a_wrong_policy_is_told(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(CatalogError) as told:
        load_policy(file)
    assert message in str(told.value)
    assert str(file) in str(told.value)


def test_a_policy_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="choose one of always-3, auto"):
        load_policy("bold")
    for missing in (tmp_path / "none.toml", str(tmp_path / "none.toml"), tmp_path / "none"):
        with pytest.raises(CatalogError, match="cannot be read"):
            load_policy(missing)
