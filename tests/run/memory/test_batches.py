"""Batches of any kind are split and lose nothing."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from epochzero.errors import InputError
from epochzero.run.memory.batches import examples_of, split, tensors_of

Pair = namedtuple("Pair", ["x", "y"])


@dataclass(frozen=True)
class Sentences:
    """A batch as programs make them."""

    tokens: Tensor
    texts: list[str]
    temperature: float = 1.0


def _batch(kind: str, size: int) -> Any:
    x, y = torch.arange(size * 3).reshape(size, 3), torch.arange(size)
    return {
        "tensor": x,
        "tuple": (x, y),
        "list": [x, y],
        "named": Pair(x, y),
        "dict": {"x": x, "nested": {"y": y, "scale": torch.tensor(2.0)}, "name": "train"},
        "userdict": UserDict({"x": x, "y": y}),
        "dataclass": Sentences(x, [f"text {index}" for index in range(size)]),
    }[kind]


KINDS = ["tensor", "tuple", "list", "named", "dict", "userdict", "dataclass"]


@given(kind=st.sampled_from(KINDS), size=st.integers(1, 40), parts=st.integers(1, 50))
def test_the_parts_are_the_batch(kind: str, size: int, parts: int) -> None:
    batch = _batch(kind, size)
    split_up = split(batch, parts)
    assert len(split_up) == (1 if parts == 1 else min(parts, size))
    sizes = [examples_of(part) for part in split_up]
    assert sum(sizes) == size
    assert max(sizes) - min(sizes) <= 1
    assert {type(part) for part in split_up} == {type(batch)}
    for path, tensor in tensors_of(batch):
        pieces = [dict(tensors_of(part))[path] for part in split_up]
        joined = torch.cat(pieces) if tensor.dim() else pieces[0]
        assert torch.equal(joined, tensor)
    if kind == "dataclass":
        assert [text for part in split_up for text in part.texts] == batch.texts
        assert {part.temperature for part in split_up} == {1.0}


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ((torch.zeros(4, 2), torch.zeros(3)), r"batch\[0\] has 4, batch\[1\] has 3"),
        ({"image": torch.zeros(())}, "no tensor to split"),
        ("text", "of type str contains no tensor"),
        (None, "of type NoneType"),
    ],
)
def test_what_cannot_be_split_is_told(batch: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        split(batch, 2)
