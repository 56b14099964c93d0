"""The operators, one a leaf; a file for each part of the taxonomy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from epochzero_models.mutate.operators import api, data, gpu, model, tensors, training
from epochzero_models.mutate.operators.base import MutationOperator

_PARTS = (model, tensors, training, data, gpu, api)


@cache
def operators() -> Mapping[str, MutationOperator]:
    """All of them, by the name of their leaf."""
    found = [
        each
        for part in _PARTS
        for each in (*vars(part).values(), *part.ROWS)
        if isinstance(each, MutationOperator)
    ]
    return MappingProxyType({each.leaf: each for each in found})
