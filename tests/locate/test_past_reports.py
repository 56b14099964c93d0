"""Past reports from JSON lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochzero.errors import InputError
from epochzero.locate.past_reports import read_past

GOOD = {"title": "Crash", "body": "It ends", "closed_at": "2024-05-01T12:00:00Z", "files": ["a.py"]}


def lines(*raw: dict[str, Any]) -> str:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in raw)


def test_reports_with_their_files() -> None:
    one, other = read_past(lines(GOOD, {**GOOD, "title": "a\u2028b", "number": 7}) + "\n\n")
    assert (one.report.title, one.report.text, one.fixed) == ("Crash", "It ends", ("a.py",))
    assert one.closed == 1714564800
    assert other.report.id == "7"


def test_reports_that_say_nothing_are_left_out() -> None:
    assert read_past(lines({**GOOD, "files": []}, {**GOOD, "title": "", "body": None})) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 2: invalid JSON"),
        ("[" * 100_000, "line 2: invalid JSON"),
        ("[]", "line 2 is not a JSON object"),
        (lines({**GOOD, "closed_at": "soon"}), "line 2: closed_at"),
        (lines({**GOOD, "closed_at": 3}), "line 2: closed_at"),
        (lines({**GOOD, "files": "a.py"}), "line 2: files"),
        (lines({**GOOD, "files": [1]}), "line 2: files"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_past(f"{lines(GOOD)}\n{text}")
