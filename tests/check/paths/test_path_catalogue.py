"""The catalogue of calls that take paths, and that of calls that fetch."""

from __future__ import annotations

import pytest

from epochzero.check.paths.catalogue import canonical, load, uses
from epochzero.check.paths.downloads import downloads

DOES = "reads lists writes appends makes asks removes parses parses-lines globs enters".split()


def test_the_catalogue_is_large_and_consistent() -> None:
    _, calls, _ = load()
    assert len(calls) >= 200
    for name, entries in calls.items():
        for use in entries:
            assert use.does in DOES, name
            assert use.at is not None or use.path, name
            assert use.parent in ("needed", "made", "quiet"), name
            assert use.at is None or use.at >= -1, name


def test_every_alias_leads_to_names_of_the_catalogue() -> None:
    aliases, calls, _ = load()
    for meant in aliases.values():
        assert any(name.startswith(meant) for name in calls), meant


@pytest.mark.parametrize(
    ("name", "does"),
    [
        ("builtins.open", "reads"),
        ("io.open", "reads"),
        ("pytorch_lightning.Trainer().fit", "reads"),
        ("lightning.Trainer().fit", "reads"),
        ("tensorflow.keras.models.load_model", "reads"),
        ("torchvision.datasets.MNIST", "lists"),
        ("pandas.read_csv().groupby().mean().to_csv", "writes"),
        ("transformers.AutoModel.from_pretrained().save_pretrained", "writes"),
        ("transformers.BertModel.from_pretrained", "lists"),
    ],
)
def test_calls_are_found_under_the_names_that_programs_use(name: str, does: str) -> None:
    found = uses(name)
    assert found is not None
    assert found[0].does == does


@pytest.mark.parametrize(
    "name", ["torchvision.datasets.MNIST().extra_repr", "torch.nn.Linear", "os.path.join", ""]
)
def test_other_calls_are_not_known(name: str) -> None:
    assert uses(name) is None


def test_a_longer_name_is_not_taken_for_its_beginning() -> None:
    assert canonical("lightning.TrainerFabric") == "lightning.TrainerFabric"


def test_what_fetches_says_from_where() -> None:
    for name, fetch in downloads().items():
        assert fetch.host or fetch.path, name
