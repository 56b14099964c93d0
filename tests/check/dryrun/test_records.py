"""What the child tells, which may be anything: the job's own code can write there."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.records import (
    LONGEST_TEXT,
    MOST_RECORDS,
    ErrorRecord,
    FrameRecord,
    VisitRecord,
    read,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
_KINDS = st.sampled_from(
    ["started", "site", "reached", "shortened", "assumed", "nan", "raised", "ended", "other"]
)
_FIELDS = st.sampled_from(["path", "line", "how", "frames", "layer", "count", "status", "total"])


def test_records_are_typed() -> None:
    frame = {"path": "t.py", "line": 3, "function": "f", "code": "f()"}
    lines = [
        {"kind": "reached", "how": "save", "phase": "training", "path": "t.py", "line": 3},
        {
            "kind": "raised",
            "type": "KeyError",
            "message": "'x'",
            "frames": [frame],
            "certain": True,
        },
    ]
    reached, raised = read(json.dumps(line).encode() for line in lines)
    assert reached == VisitRecord("save", "training", "t.py", 3)
    assert raised == ErrorRecord(
        "KeyError", "'x'", certain=True, frames=(FrameRecord("t.py", 3, "f", "f()"),)
    )


def test_a_field_of_another_type_is_left_out() -> None:
    line = {"kind": "reached", "how": 7, "line": "3", "path": True}
    assert list(read([json.dumps(line).encode()])) == [VisitRecord()]


def test_what_is_read_is_bounded() -> None:
    line = json.dumps({"kind": "reached", "how": "x" * 10**5}).encode()
    records = list(read([line] * (MOST_RECORDS + 5)))
    assert len(records) == MOST_RECORDS
    assert isinstance(records[0], VisitRecord)
    assert len(records[0].how) == LONGEST_TEXT


@given(st.lists(st.binary(max_size=60)))
def test_bytes_that_are_no_records_are_left_out(lines: list[bytes]) -> None:
    assert list(read(lines)) == []


@given(_KINDS, st.dictionaries(_FIELDS, _JSON))
def test_any_json_is_read_without_an_error(kind: str, fields: dict[str, object]) -> None:
    for record in read([json.dumps({"kind": kind, **fields}).encode()]):
        hash(getattr(record, "path", ""))
