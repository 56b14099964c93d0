"""Names of the report that a file defines or uses."""

from __future__ import annotations

import math

import numpy as np

from epochzero.code.words import name_hashes
from epochzero.locate.features.context import Context, share
from epochzero.locate.index import Columns, Floats, Sets

_PARTS = ("all", "summary", "prose", "code")


def names(context: Context) -> Columns:
    """Definitions and uses; a name that occurs in many files is weak evidence."""
    columns: Columns = {}
    for part in _PARTS:
        rare = _rarity(context, context.corpus.defined, part)
        columns[f"defines_{part}"] = rare.max(axis=1, initial=0.0)
        if part == "all":
            columns["defines_sum"] = np.power(rare, 0.7).sum(axis=1)
            columns["defines_sum_share"] = share(columns["defines_sum"])
    for part in ("all", "summary"):
        rare = _rarity(context, context.corpus.classes, part)
        columns[f"class_{part}"] = rare.max(axis=1, initial=0.0)
        columns[f"uses_{part}"] = share(_uses(context, part))
    count = len(context.query.identifiers["all"])
    columns["names"] = np.full(context.size, math.log1p(count), np.float32)
    return columns


def _rarity(context: Context, sets: Sets, part: str) -> Floats:
    """One over the number of files that define a name, where a file defines it, (files, names)."""
    held = sets.holders(name_hashes(context.query.identifiers[part]))
    return np.asarray(held / np.maximum(1, held.sum(axis=0)), np.float32)


def _uses(context: Context, part: str) -> Floats:
    """The sum of the inverse document frequencies of the names that a file uses."""
    held = context.corpus.used.holders(name_hashes(context.query.identifiers[part]))
    often = held.sum(axis=0)
    idf = np.where(often > 0, np.log1p(context.size / np.maximum(1, often)), 0)
    return np.asarray(held @ idf, np.float32)
