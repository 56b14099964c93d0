"""Tests of steps that run out of memory, after which the collector frees what it can."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _only_new_objects() -> Iterator[None]:
    """To visit all that pytest and torch hold takes a quarter of a second, each time."""
    gc.freeze()
    yield
    gc.unfreeze()
