"""The examples of the borders between categories are diagnosed as the borders define."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochzero import taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis
    from epochzero.taxonomy import Border

    Diagnose = Callable[..., Diagnosis]


@pytest.mark.parametrize(
    ("border", "example", "value"),
    [(b, b.yes_example, b.yes) for b in taxonomy.borders()]
    + [(b, b.no_example, b.no) for b in taxonomy.borders()],
)
def test_the_diagnosis_follows_the_border(
    diagnose: Diagnose, border: Border, example: str, value: str
) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    )
    raised = example.strip().split(":", 1)[0].rpartition(".")[2].isidentifier()
    found = diagnose((trace if raised else "") + example + "\n")
    assert getattr(found, border.field) == value, border.question


def test_borders_are_between_values_of_their_field() -> None:
    vocabularies = {
        "category": taxonomy.categories(),
        "phase": taxonomy.phases(),
        "root_cause": taxonomy.root_causes(),
        "retry": taxonomy.retries(),
    }
    for border in taxonomy.borders():
        assert border.yes != border.no
        assert {border.yes, border.no} <= set(vocabularies[border.field])
        assert border.question.endswith("?")
    pairs = [(b.field, frozenset((b.yes, b.no))) for b in taxonomy.borders()]
    assert len(pairs) == len(set(pairs))
