"""Jobs that are run on a platform: on a busy machine that takes its time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial

import pytest


@pytest.fixture
def run(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """As of any run, with more patience."""
    return partial(run, timeout=120)
