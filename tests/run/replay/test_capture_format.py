"""Files of tensors and containers as JSON: what is written is read again, what was tampered with is refused."""

from __future__ import annotations

import dataclasses
import io
import json
from collections import OrderedDict, UserDict, namedtuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from epochzero.run.replay.child import files  # noqa: E402
from epochzero.run.replay.child.layout import header_of, read_header  # noqa: E402
from epochzero.run.replay.child.structure import LeftOutError, decode, encode  # noqa: E402
from epochzero.run.replay.child.tensors import read_tensors, write_tensors  # noqa: E402

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    images: Any
    names: list[str]


def test_tensors_of_all_kinds_are_read_as_they_were(tmp_path: Path) -> None:
    tensors = {
        "empty": torch.empty(0, 3),
        "number": torch.tensor(3.5, dtype=torch.float64),
        "half": torch.randn(3, 5).to(torch.bfloat16),
        "turned": torch.arange(12).reshape(3, 4).t(),
        "truth": torch.tensor([True, False]),
        "complex": torch.randn(4, dtype=torch.complex64),
    }
    told = write_tensors(tmp_path / "t", tensors)
    assert told["bytes"] == (tmp_path / "t").stat().st_size
    found = read_tensors(tmp_path / "t")
    assert all(found[name].equal(tensor) for name, tensor in tensors.items())
    assert all(found[name].dtype == tensor.dtype for name, tensor in tensors.items())


def test_the_library_of_that_layout_reads_them(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    tensors = {"weight": torch.randn(3, 5), "count": torch.tensor(4)}
    write_tensors(tmp_path / "t", tensors)
    assert library.load_file(tmp_path / "t")["weight"].equal(tensors["weight"])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_without_taking_memory(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    for text in (data, header_of({"a": ("F32", (2,))})[: len(data)] + data):
        path.write_bytes(text)
        with path.open("rb") as file:
            try:
                read_header(file)
            except (ValueError, RecursionError):
                continue


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
        {"dtype": "object", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]},
        7,
    ],
)
def test_a_header_that_cannot_be_is_refused(tmp_path: Path, entry: Any) -> None:
    text = json.dumps({"a": entry}).encode()
    path = tmp_path / "t"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with path.open("rb") as file, pytest.raises(ValueError, match=r"tensor|bytes"):
        read_header(file)


@given(st.integers(1, 50))
def test_json_that_was_cut_off_is_refused(tmp_path_factory: Any, missing: int) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.json.gz"
    files.write_json(path, {"losses": [0.5, "nan"], "path": "a" * 50})
    assert files.read_json(path) == {"losses": [0.5, "nan"], "path": "a" * 50}
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises((ValueError, OSError)):
        files.read_json(path)


def test_json_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    files.write_json(tmp_path / "a", "a" * 1000)
    with pytest.raises(ValueError, match="larger than expected"):
        files.read_json(tmp_path / "a")


def round_trip(value: Any) -> Any:
    tensors: dict[str, Any] = {}

    def put(tensor: Any) -> str:
        tensors[str(len(tensors))] = tensor
        return str(len(tensors) - 1)

    told = json.loads(json.dumps(encode(value, put), allow_nan=False))
    return decode(told, tensors)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(PLAIN)
def test_data_comes_back_as_it_was(value: Any) -> None:
    assert repr(round_trip(value)) == repr(value)


def test_kinds_of_batches_come_back() -> None:
    images = torch.randn(2, 3)
    batch = round_trip(Batch(images, ["a"]))
    assert type(batch) is Batch
    assert batch.images.equal(images)
    assert round_trip(Pair(1, 2)) == Pair(1, 2)
    assert round_trip(OrderedDict(a=1)) == {"a": 1}
    assert round_trip(UserDict(ids=images))["ids"].equal(images)


def test_what_is_no_data_is_told() -> None:
    told = encode({"file": io.StringIO()}, lambda _: None)
    with pytest.raises(LeftOutError, match="StringIO"):
        decode(told, {})


def test_only_data_classes_of_the_program_are_made() -> None:
    for kind, name in (("object", "subprocess:Popen"), ("named", "os:stat_result"), ("object", "nowhere:Thing")):  # fmt: skip
        with pytest.raises(LeftOutError):
            decode({"kind": kind, "type": name, "fields": {}, "items": []}, {})
