"""What versions of libraries took away is known exactly, and judged by the target's versions."""

from __future__ import annotations

import pytest

from epochzero.check.target.model import CallSignature, Target
from epochzero.check.target.signature import misfit
from epochzero.check.view.api import changes, class_of, member, reached, version
from epochzero.check.view.builds import needed_libraries, runs_on


def test_every_change_says_when_what_instead_and_where_it_is_told() -> None:
    all_of = [change for some in changes().values() for change in some]
    assert len(all_of) >= 150
    for change in all_of:
        assert change.instead, change
        assert change.source, change
        assert version(change.removed), change


@pytest.mark.parametrize(
    ("have", "needed", "answer"),
    [
        ("2.1.0+cu121", "2.1", True),
        ("2.0.1", "2.1", False),
        ("1.24", "1.24.0", True),
        ("10.0.0", "9.5", True),
    ],
)
def test_versions_are_compared_by_their_numbers(have: str, needed: str, answer: bool) -> None:
    assert reached(have, needed) is answer


def test_methods_are_those_of_the_class_that_a_call_gives() -> None:
    assert class_of("pandas.read_csv().append") == "pandas.DataFrame.append"
    assert class_of("pandas.read_csv().dropna().append") == "pandas.DataFrame.append"
    assert class_of("pandas.read_csv()['loss'].append") == "pandas.Series.append"
    assert (
        class_of("pandas.read_csv().groupby()['loss'].mean().iteritems")
        == "pandas.Series.iteritems"
    )
    assert class_of("pandas.read_csv().groupby().mean().append") == "pandas.DataFrame.append"
    assert class_of("torch.zeros().detach().cpu().numpy().ptp") == "numpy.ndarray.ptp"
    assert class_of("pandas.read_csv()[].append") == "pandas.DataFrame[].append"
    assert class_of("lightning.pytorch.Trainer") == "pytorch_lightning.Trainer"
    assert class_of("some.library.make().append") == ""


def test_of_an_open_class_nothing_is_said_to_be_missing() -> None:
    target = Target(
        "t", api={"lib": {"A": None, "A.go": None, "B": None, "B.*": None, "B.go": None}}
    )
    assert member(target, "lib.A.stop")[0] is False
    assert member(target, "lib.B.stop")[0] is None
    assert member(target, "lib.stop")[0] is False
    assert member(target, "other.stop")[0] is None


@pytest.mark.parametrize(
    ("positional", "keywords", "complete", "words"),
    [
        (2, (), True, ""),
        (1, ("b",), True, ""),
        (1, (), True, "missing 1 required positional argument: 'b'"),
        (1, (), False, ""),
        (4, (), True, "takes 3 positional arguments but 4 were given"),
        (2, ("d",), True, "got an unexpected keyword argument 'd'"),
        (2, ("a",), True, "got multiple values for argument 'a'"),
    ],
)
def test_arguments_are_judged_as_python_does(
    positional: int, keywords: tuple[str, ...], complete: bool, words: str
) -> None:
    signature = CallSignature(("a", "b", "c"), 2, ("a", "b", "c"))
    assert misfit(signature, positional, keywords, complete) == words


@pytest.mark.parametrize(
    ("built", "capability", "runs"),
    [
        (("sm_80",), (8, 6), True),
        (("sm_86",), (8, 0), False),
        (("sm_80",), (9, 0), False),
        (("sm_70", "compute_70"), (9, 0), True),
        (("sm_90a",), (9, 0), True),
        (("sm_90a",), (10, 0), False),
    ],
)
def test_binary_code_runs_within_its_major_version(
    built: tuple[str, ...], capability: tuple[int, int], runs: bool
) -> None:
    assert runs_on(built, capability) is runs


def test_every_shared_library_says_what_brings_it() -> None:
    for needed in needed_libraries().values():
        assert needed.needs
        assert needed.packages
        assert needed.source
