"""Histories of APIs: written and read again, and what those that ship say of known changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.target.history import ApiHistory, api_of, history_of, libraries, written
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import Signatures, misfit, signature_of
from epochzero.check.view.api import ApiChange, changes, reached, version
from tests.catalogs import every

NAMES = st.sampled_from(["Linear", "Linear.fit", "load", "*", "save"])
SIGNATURES = st.none() | st.builds(
    lambda names: CallSignature(names, len(names), names),
    st.lists(st.sampled_from(["a", "b", "c"]), unique=True).map(tuple),
)
APIS = st.dictionaries(
    st.sampled_from(["lib", "lib.nn", "lib.optim"]), st.dictionaries(NAMES, SIGNATURES)
)


@given(st.lists(APIS, min_size=1, max_size=9))
def test_what_is_written_is_read_again(
    apis: list[dict[str, dict[str, CallSignature | None]]],
) -> None:
    versions = [f"1.{number}.3" for number in range(len(apis))]
    data = written(versions, apis)
    history = ApiHistory.of("lib", data)
    for index, api in enumerate(apis):
        assert history.index(versions[index]) == index
        assert {name: history.names(name, index) for name in history.modules(index)} == api


def test_a_signature_is_read_when_it_is_asked_for() -> None:
    names = Signatures({"Linear": None, "load": "path, mode=...", "save": "path=..., mode"})
    assert list(names) == ["Linear", "load", "save"]
    assert names["Linear"] is None
    assert names["load"] == signature_of("path, mode=...")
    with pytest.raises(ValueError, match="mode"):
        names["save"]


def test_a_patch_release_has_the_api_of_its_minor_release() -> None:
    history = ApiHistory.of("lib", written(["1.9.1", "1.10.2"], [{"lib": {}}, {"lib": {}}]))
    assert history.index("1.10.0+cu121") == 1
    assert history.index("1.9") == 0
    assert history.index("1.11.0") is None
    assert history.index("?") is None


@every("distribution", sorted(set(libraries().values())))
def test_each_history_that_ships_can_be_read_and_goes_forward(distribution: str) -> None:
    history = history_of(distribution)
    assert history is not None
    assert all(version(a) < version(b) for a, b in pairwise(history.versions))
    api = api_of(distribution, history.versions[-1])
    assert api
    assert sum(map(len, api.values())) > 10


KNOWN = [
    one
    for group in changes().values()
    for one in group
    if one.removed and not one.back and history_of(one.distribution) is not None
]
STILL_NAMED = {
    "numpy.cast": "the stubs import typing's under this name",
    "numpy.disp": "the stubs of 2.0 kept it",
    "pandas.Panel": "an empty class, made only for Python before 3.7",
    "torch.eig": "raises RuntimeError",
    "torch.lstsq": "raises RuntimeError",
    "torch.matrix_rank": "raises RuntimeError",
    "torch.solve": "raises RuntimeError",
    "torch.symeig": "raises RuntimeError",
}


@every("change", KNOWN, lambda one: f"{one.name} {one.keyword}".strip())
def test_what_the_table_says_is_gone_is_gone_in_the_packages(change: ApiChange) -> None:
    history = history_of(change.distribution)
    assert history is not None
    module, _, last = change.name.rpartition(".")
    for one in history.versions:
        names = (api_of(change.distribution, one) or {}).get(module, {})
        if not reached(one, change.removed) or {"*", "__getattr__"} & names.keys():
            continue
        if change.keyword:
            takes = names.get(last)
            assert takes is None or takes.any_keyword or change.keyword not in takes.keywords
        elif change.name not in STILL_NAMED:
            assert last not in names, one


@pytest.mark.parametrize(
    ("name", "positional", "keywords"),
    [
        ("randint", 1, ["size"]),
        ("arange", 0, ["end"]),
        ("add", 0, ["input", "other"]),
        ("addmm", 2, ["mat2"]),
        ("scatter", 3, ["value"]),
    ],
)
def test_a_call_that_one_overload_takes_fits_in_each_version(
    name: str, positional: int, keywords: list[str]
) -> None:
    history = history_of("torch")
    assert history is not None
    for number, release in enumerate(history.versions):
        signature = (history.names("torch", number) or {})[name]
        assert signature is not None
        assert not misfit(signature, positional, keywords, True), release
