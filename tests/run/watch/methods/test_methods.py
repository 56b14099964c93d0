"""Methods by their names."""

from __future__ import annotations

import pytest

from epochzero.errors import InputError
from epochzero.run.watch.history import read_records
from epochzero.run.watch.methods import NAMES, by_name
from epochzero.run.watch.model import Watched


@pytest.mark.parametrize("name", NAMES)
def test_each_method_says_nothing_of_nothing(name: str) -> None:
    assert by_name(name)(read_records([])) == Watched(0)


def test_an_unknown_method_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="deeplocalize"):
        by_name("deepfix")
