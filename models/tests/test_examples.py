"""What a user names as data becomes examples, or is refused with its place."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from epochzero.errors import InputError
from epochzero_models import Examples, load_examples
from epochzero_models.classifier import check_labels

OWN = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

x, y = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 0, 1, 0, 1])

class Rows(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, at):
        return {"x": x[at].numpy(), "label": int(y[at])}

def pair(): return x.numpy().astype("float64"), y.numpy()
def tensors(): return TensorDataset(x, y)
def loader(): return DataLoader(TensorDataset(x, y), batch_size=4)
def shuffled(): return DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
def mapping(): return {"x": x, "y": y, "who": np.array(list("aabbcc"))}
def empty(): return TensorDataset(x[:0], y[:0])
def uneven(): return [(torch.zeros(2), 0), (torch.zeros(3), 1)]
def alone(): return [torch.zeros(2)]
def texts(): return [("a", 0)]
def bare(): return x
def bare_items(): return TensorDataset(x)
def bare_batches(): return DataLoader(TensorDataset(x), batch_size=4)
def bare_mappings(): return [{"x": row} for row in x]
def hot(): return x, torch.eye(6)
def hot_items(): return [(torch.zeros(2), torch.eye(3)[0])]
def number(): return 3

class Breaks(Rows):
    def __getitem__(self, at): return 1 / 0
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own_data.py").write_text(OWN)
    return str(tmp_path / "own_data.py")


@pytest.mark.parametrize("name", ["pair", "tensors", "loader", "mapping", "Rows"])
def test_code_gives_examples(own: str, name: str) -> None:
    found = load_examples(f"{own}:{name}")
    assert torch.equal(found.inputs, torch.arange(12.0).reshape(6, 2))
    assert found.labels.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "name", ["bare", "bare_items", "bare_batches", "bare_mappings", "tensors", "mapping"]
)
def test_inputs_beyond_the_model_need_no_labels(own: str, name: str) -> None:
    found = load_examples(f"{own}:{name}", labeled=False)
    assert torch.equal(found.inputs, torch.arange(12.0).reshape(6, 2))
    assert len(found.labels) == 6


def test_files_without_labels_are_read_where_none_are_needed(tmp_path: Path) -> None:
    np.savez(tmp_path / "beyond.npz", x=np.ones((5, 3), np.float32))
    (tmp_path / "beyond.csv").write_text("a,b\n1,2\n3,4\n")
    folder = tmp_path / "images" / "other"
    folder.mkdir(parents=True)
    for number in range(3):
        Image.new("L", (4, 4)).save(folder / f"{number}.png")
    shapes = {"beyond.npz": (5, 3), "beyond.csv": (2, 2), "images": (3, 1, 4, 4)}
    for name, shape in shapes.items():
        path = str(tmp_path / name)
        assert (
            load_examples(
                path, labeled=False, target=None if name == "images" else "y"
            ).inputs.shape
            == shape
        )
        with pytest.raises(InputError):
            load_examples(path)


def test_a_shuffling_loader_follows_the_seed(own: str) -> None:
    first, again, other = (
        load_examples(f"{own}:shuffled", seed=literal).inputs for literal in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("empty", "has no examples"),
        ("uneven", r"differ in their shapes, \(2,\) and \(3,\)"),
        ("alone", r"item 1 is a Tensor, not \(input, label\)"),
        ("texts", "item 1 is a pair of str and int, which cannot be converted to tensors"),
        ("hot", "convert one-hot labels"),
        ("hot_items", "convert one-hot labels"),
        ("number", "returns a int"),
        ("Breaks", r"fails with ZeroDivisionError: division by zero \(own_data\.py, line \d+\)"),
        ("absent", "has no absent"),
    ],
)
def test_code_that_gives_none_is_told_of(own: str, name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_examples(f"{own}:{name}")


def test_a_table_has_inputs_labels_and_groups(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex,pay,label\n30,f,1.5,yes\n40,m,2.5,no\n50,f,3,yes\n")
    found = load_examples(str(tmp_path / "t.csv"), group="sex")
    assert found.columns == ("age", "pay")
    assert found.inputs.tolist() == [[30, 1.5], [40, 2.5], [50, 3]]
    assert found.labels.tolist() == [1, 0, 1]
    assert found.groups == ("f", "m", "f")
    assert load_examples(str(tmp_path / "t.csv"), group="sex", most=2).groups in {
        ("f", "m"), ("f", "f"), ("m", "f")
    }  # fmt: skip
    # A group of numbers was an input of the model; it stays one.
    (tmp_path / "n.csv").write_text("age,sex,label\n30,1,0\n40,0,1\n")
    assert load_examples(str(tmp_path / "n.csv"), group="sex").columns == ("age", "sex")


@pytest.mark.parametrize(
    ("text", "target", "told"),
    [
        ("a,b\n1,2\n", None, "pass --target; there are a, b"),
        ("a,b\n1,2\n", "c", "has no column 'c'"),
        ("a,b\n1,2\nx,2\n", "b", "column 'a' contains 'x', which is not a number"),
        ("a,b\n1,2\n,2\n", "b", "NaN or infinity, the first of them example 2, column 'a'"),
        ("a,b\n1,2\n1,2,3\n", "b", "record 2: "),
        ("b\n1\n2\n", "b", "has no column except that of the labels"),
        ("a,b\n", "b", "has no examples"),
        ("", None, "empty file"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_of(
    tmp_path: Path, text: str, target: str | None, told: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=told):
        load_examples(str(tmp_path / "t.csv"), target=target)


def test_arrays_are_read_and_never_unpickled(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "a.npz", images=images, labels=np.array([1, 0]))
    found = load_examples(str(tmp_path / "a.npz"))
    assert found.inputs.dtype == torch.float32
    assert found.inputs[1, 0, 0] == 12
    tokens = np.array([[1, 2], [3, 4]])
    np.savez(tmp_path / "t.npz", x=tokens, y=np.array([1, 0]))
    assert load_examples(str(tmp_path / "t.npz")).inputs.dtype == torch.int64
    np.savez(tmp_path / "p.npz", x=np.array([{}, {}], object), y=np.array([1, 0]))
    with pytest.raises(InputError, match=r"p\.npz"):
        load_examples(str(tmp_path / "p.npz"))


def test_empty_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", x=np.zeros((0, 2)), y=np.zeros(0, int))
    with pytest.raises(InputError, match=r"e\.npz has no examples"):
        load_examples(str(tmp_path / "e.npz"))


def test_names_are_numbered_only_if_no_class_is_missing(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,label\n1,2,ant\n3,4,cat\n")
    found = load_examples(str(table))
    assert found.classes == ("ant", "cat")
    check_labels("net", 2, found)
    with pytest.raises(InputError, match=r"2 different names \(ant, cat\), but net has 3 outputs"):
        check_labels("net", 3, found)
    assert not load_examples(str(table), labeled=False).classes
    table.write_text("a,b,label\n1,2,0\n3,4,1\n")
    check_labels("net", 3, load_examples(str(table)))


def test_images_come_in_folders_of_their_classes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "i" / name).mkdir(parents=True)
        image.new("RGB", (4, 3), (255 * number, 0, 0)).save(tmp_path / "i" / name / "1.png")
    found = load_examples(str(tmp_path / "i"))
    assert found.inputs.shape == (2, 3, 3, 4)
    assert found.inputs[:, 0, 0, 0].tolist() == [0, 1]
    assert found.labels.tolist() == [0, 1]
    image.new("RGB", (5, 3)).save(tmp_path / "i" / "dog" / "2.png")
    with pytest.raises(InputError, match="all images must have the same size"):
        load_examples(str(tmp_path / "i"))
    with pytest.raises(InputError, match="--group names a column"):
        load_examples(str(tmp_path / "i"), group="sex")


@given(content=st.binary(max_size=300), suffix=st.sampled_from([".npz", ".csv", ".npy"]))
def test_any_file_is_read_or_refused(
    content: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    with suppress(InputError):
        assert len(load_examples(str(path)))


def test_examples_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InputError, match="3 inputs but 2 labels"):
        Examples("e", torch.zeros(3, 2), torch.zeros(2).long())
