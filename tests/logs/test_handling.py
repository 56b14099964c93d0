"""Whether a program continues without what failed."""

from __future__ import annotations

import pytest

from epochzero.logs.handling import is_set_aside


@pytest.mark.parametrize(
    ("line", "continues"),
    [
        ("ERROR attempt 1 of 5 failed: <urlopen error [Errno 111] Connection refused>", True),
        ("download failed (try 2/3)", True),
        ("ERROR attempt 5 of 5 failed: <urlopen error [Errno 111] Connection refused>", False),
        ("attempt 2 of 5 failed, giving up", False),
        ("ERROR download failed", False),
        ("progress failed; training continues", True),
        ("could not upload the table, the job goes on", True),
        ("ERROR write failed, the run cannot be resumed and the job does not continue", False),
        ("If the problem continues, ask the operators of the job", False),
    ],
)
def test_what_a_program_continues_without(line: str, continues: bool) -> None:
    assert is_set_aside(line) is continues
