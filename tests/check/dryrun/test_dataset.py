"""Data sets that Python code makes: drawn in a process of its own, profiled, compared."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from epochzero.check.dryrun.dataset import draw_items
from epochzero.data import Array, Profile, profile_items, validate_items
from epochzero.errors import InputError

pytestmark = pytest.mark.usefixtures("preloaded")

PLAIN = """\
class Reviews:
    def __len__(self):
        return 5000
    def __getitem__(self, n):
        if n >= 5000:
            raise IndexError(n)
        return {"text": "good " * (n % 7), "meta": {"stars": n % 5}, "label": n % 2}

def stream():
    for n in range(10):
        yield n, float(n)

broken = [1, 2, 3]
"""
TORCH = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

images = TensorDataset(torch.randn(200, 3, 8, 8), torch.arange(200) % 10)
loader = DataLoader(images, batch_size=4)
shifted = TensorDataset(torch.randn(200, 3, 9, 9) * 1000, torch.arange(200) % 11)
nan = TensorDataset(torch.full((20, 3, 8, 8), torch.nan), torch.arange(20) % 10)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "vision.py").write_text(TORCH)
    return tmp_path


def profiled(folder: Path, name: str) -> Profile:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return profile_items(name, draw_items(name, folder, {**os.environ, "PATH": path}))


def test_mappings_have_columns_by_their_keys(folder: Path) -> None:
    (table,) = profiled(folder, "plain:Reviews").tables
    assert (table.records, table.label) == (1000, "label")
    assert [column.name for column in table.columns] == ["text", "meta.stars", "label"]
    stars, text = table.column("meta.stars"), table.column("text")
    assert stars is not None
    assert [name for name, _ in sorted(stars.categories)] == list("01234")
    assert text is not None
    assert text.kind == "category"


def test_what_has_no_length_is_read_from_its_beginning(folder: Path) -> None:
    (table,) = profiled(folder, "plain:stream").tables
    assert [(column.name, column.count) for column in table.columns] == [("0", 10), ("1", 10)]


@pytest.mark.parametrize("name", ["vision:images", "vision:loader"])
def test_tensors_have_shape_type_and_classes(folder: Path, name: str) -> None:
    pytest.importorskip("torch")
    (table,) = profiled(folder, name).tables
    image, label = table.columns
    assert (image.kind, image.shape, image.dtype) == ("list", (3, 8, 8), "float32")
    assert table.label == label.name == "1"
    assert len(label.categories) == 10


def test_other_tensors_differ(folder: Path) -> None:
    pytest.importorskip("torch")
    known = profiled(folder, "vision:images")
    assert not validate_items(profiled(folder, "vision:loader"), known).findings
    found = validate_items(profiled(folder, "vision:shifted"), known).findings
    assert {(one.kind, one.column) for one in found} == {
        ("type", "0"), ("range", "0"), ("new_class", "1"),
    }  # fmt: skip
    found = validate_items(profiled(folder, "vision:nan"), known).findings
    assert [(one.kind, one.column) for one in found] == [("nan", "0")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent:data", "ModuleNotFoundError: No module named 'absent'"),
        ("plain:absent", "has no attribute 'absent'"),
    ],
)
def test_what_cannot_be_made_is_refused(folder: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        profiled(folder, name)


def test_the_extremes_of_an_array_are_exact() -> None:
    items = [{"x": Array((1000,), "int64", (1.0, 2.0, -7.0, 99.0)), "y": 1}]
    column = profile_items("data", items).tables[0].columns[0]
    assert column.numbers is not None
    assert column.lengths is not None
    assert (column.numbers.min, column.numbers.max, column.lengths.max) == (-7, 99, 1000)
