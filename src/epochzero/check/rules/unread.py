"""Findings that no rule reads from the source: of dry runs, data and suppressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from epochzero.check.tables import read_table


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
    table = read_table(__package__, "unread.toml")
    return MappingProxyType({name: Unread(name, **fields) for name, fields in table.items()})
