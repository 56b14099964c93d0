"""Findings that no rule reads from the source: of dry runs, data and suppressions."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Unread:
    """A kind of finding that no rule reads from the source.

    Attributes:
        id: id in findings.
        title: one line that states what goes wrong.
        category: category of most of the predicted failures, from the taxonomy.
        why: what happens; a few sentences.
        fix: general advice.
        source: a study or documentation.
    """

    id: str
    title: str
    category: str
    why: str
    fix: str
    source: str


@cache
def others() -> Mapping[str, Unread]:
    """All kinds by id."""
    text = files(__package__).joinpath("unread.toml").read_text(encoding="utf-8")
    return MappingProxyType(
        {name: Unread(name, **fields) for name, fields in tomllib.loads(text).items()}
    )
