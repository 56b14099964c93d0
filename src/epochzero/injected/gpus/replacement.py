"""Attributes of torch that are replaced for a while, and put back in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


@contextmanager
def replaced(owner: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
    """Replace attributes of a module or class; what it did not have, or only inherited, is removed again."""
    old = {name: vars(owner).get(name, _ABSENT) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
