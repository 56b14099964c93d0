"""Changes as columns: they must say what the changes themselves say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code.changes import Change, Changes

PATH = st.sampled_from(["a.py", "pkg/b.py", "täb.py", "odd\udce4.py", "with\nnewline"])
CHANGE = st.builds(
    Change,
    commit=st.text("0123456789abcdef", min_size=40, max_size=40),
    time=st.integers(0, 1 << 40),
    author_hash=st.text("0123456789abcdef", min_size=16, max_size=16),
    message=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30),
    files=st.lists(PATH, unique=True, max_size=4).map(tuple),
    renames=st.lists(st.tuples(PATH, PATH), max_size=2).map(tuple),
    is_fix=st.booleans(),
)
CHANGES = st.lists(CHANGE, max_size=5)


@given(CHANGES)
def test_what_goes_in_comes_out(changes: list[Change]) -> None:
    columns = Changes.of(changes)
    assert [*columns] == changes
    assert columns == changes
    assert columns[-2:] == changes[-2:]
    assert columns != [*changes, *changes, "more"]
    kept, said = Changes.from_bytes(columns.to_bytes(tip="x"))
    assert (kept, said) == (columns, {"tip": "x"})
    assert kept.bags.hashes.tolist() == columns.bags.hashes.tolist()


@given(CHANGES, CHANGES)
def test_joined_and_by_time(one: list[Change], other: list[Change]) -> None:
    both = Changes.of(one).joined(Changes.of(other))
    assert [*both] == [*one, *other]
    assert [*both.latest_first()] == sorted([*one, *other], key=lambda change: -change.time)
    assert both.bags.totals.tolist() == Changes.of([*one, *other]).bags.totals.tolist()


def test_files_go_by_the_names_that_they_have_today() -> None:
    def change(files: list[str], *renames: tuple[str, str]) -> Change:
        return Change("0" * 40, 0, "", "", tuple(files), renames, False)

    changes = Changes.of(
        [
            change(["c"], ("b", "c")),
            change(["b", "x"]),
            change(["b"], ("a", "b")),
            change(["a", "b"]),  # both were to become c
            change(["a"]),
        ]
    )
    number, path = changes.today
    seen = [(n, changes.paths[p]) for n, p in zip(number.tolist(), path.tolist(), strict=True)]
    assert sorted(seen) == [(0, "c"), (1, "c"), (1, "x"), (2, "c"), (3, "c"), (4, "c")]
    assert number.tolist() == sorted(number.tolist())


def test_any_damage_is_noticed() -> None:
    changes = Changes.of([Change("0" * 40, 5, "1" * 16, "Fix it", ("a",), (), True)] * 50)
    data = changes.to_bytes()
    for place in np.linspace(0, len(data) - 1, 40).astype(int).tolist():
        broken = bytearray(data)
        broken[place] ^= 0x55
        with pytest.raises(ValueError, match=r"histor|unpack|Expecting|decode|buffer"):
            Changes.from_bytes(bytes(broken))
