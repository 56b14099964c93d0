"""What a checkpoint holds is read from its file, and nothing of it is executed."""

from __future__ import annotations

import argparse
import collections
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import check
from epochzero.check.view.checkpoints import read_checkpoint, refused_globals

OBJECTS = [{"model": 1, "args": argparse.Namespace(lr=1)}, {"a": {"b": [1, (2,)]}, "c": {3}}, {}]
NEW = 'format = 1\ndistributions = { torch = "2.7.1" }\n'


def saved(folder: Path, data: bytes) -> Path:
    file = folder / "last.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("last/data.pkl", data)
    return file


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("state", OBJECTS)
def test_keys_and_classes_are_read(tmp_path: Path, state: dict[str, object], protocol: int) -> None:
    held = read_checkpoint(str(saved(tmp_path, pickle.dumps(state, protocol))))
    assert held is not None
    assert held.keys == tuple(state)
    assert ("argparse.Namespace" in refused_globals(held)) == ("args" in state)


def test_an_ordered_dictionary_is_one(tmp_path: Path) -> None:
    state = collections.OrderedDict([("weight", 1), ("bias", 2)])
    held = read_checkpoint(str(saved(tmp_path, pickle.dumps(state, 2))))
    assert held is not None
    assert held.keys == ("weight", "bias")
    assert refused_globals(held) == ()


class Bomb:
    """Unpickling it would fail."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1 / 0",)


def test_nothing_is_executed(tmp_path: Path) -> None:
    held = read_checkpoint(str(saved(tmp_path, pickle.dumps({"a": Bomb()}))))
    assert held is not None
    assert held.keys == ("a",)


@given(st.binary(max_size=60), st.integers(0, 80))
def test_bytes_of_any_kind_are_no_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    read_checkpoint(str(saved(folder, data)))
    read_checkpoint(str(saved(folder, pickle.dumps(OBJECTS[0])[:cut] + data)))
    (folder / "last.pt").write_bytes(data)
    assert read_checkpoint(str(folder / "last.pt")) is None
    assert read_checkpoint(str(folder / "other.pt")) is None


def test_the_file_says_what_is_missing(tmp_path: Path) -> None:
    saved(tmp_path, pickle.dumps(OBJECTS[0]))
    text = "import torch\n\nstate = torch.load('last.pt')\nprint(state['scheduler'])\n"
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "target.toml").write_text(NEW)
    found = check(["python", "train.py"], tmp_path / "target.toml", folder=tmp_path).findings
    told = {one.rule: one.place.line for one in found}
    assert told["checkpoint-key-missing"] == 4
    assert told["checkpoint-not-weights"] == 3
