"""Properties that all entries of a data catalogue must have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

# What pytest raises to end a test is no `Exception`.
_OUTCOMES = (pytest.fail.Exception, pytest.skip.Exception, pytest.xfail.Exception)


def every(
    parameter: str,
    entries: Iterable[Any] | Callable[[], Iterable[Any]],
    name: Callable[[Any], str] = str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes one test of a test of one entry: it runs over all entries and reports each that fails.

    `pytest.mark.parametrize` would make a case of each entry. With thousands of entries, collecting
    and reporting the cases takes longer than testing them. Fixtures are shared by all entries.

    Args:
        parameter: The parameter of the test that takes an entry.
        entries: The catalogue, or a function that loads it. Every process of pytest-xdist imports every
            test file, so what takes long to load is loaded when the test runs.
        name: Names an entry in the report of a failure.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def test_all(subtests: pytest.Subtests, **fixtures: Any) -> None:
            catalogue = list(entries() if callable(entries) else entries)
            assert catalogue, "the catalogue is empty"
            for entry in catalogue:
                try:
                    test(**fixtures, **{parameter: entry})
                except (Exception, *_OUTCOMES):
                    with subtests.test(name(entry)):
                        raise

        asked = inspect.signature(test).parameters.values()
        fixtures = [one.replace(kind=one.KEYWORD_ONLY) for one in asked if one.name != parameter]
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test_all.__signature__ = inspect.Signature([subtests, *fixtures])  # type: ignore[attr-defined]
        return test_all

    return decorate
