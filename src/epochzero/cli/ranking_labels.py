"""How rankings are named in every output format: places, types of bugs, causes outside of the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.cli import layout

if TYPE_CHECKING:
    from epochzero.locate.model import Extrinsic, Item

HASH_LENGTH = 10
MOST_REASONS = 3
"""Maximum number of reasons for a place with ``--explain``; JSON has all."""
BUG_TYPES = {
    "model": "the model's structure",
    "training": "training",
    "tensor": "tensors and inputs",
    "api": "API usage",
    "gpu": "GPU",
    "ndl": "not a deep-learning fault",
}


def is_worth_showing(extrinsic: Extrinsic, explain: bool) -> bool:
    """Whether to mention a cause outside of the code; ``explain``: if the user asked for reasons."""
    return extrinsic.is_likely or (explain and bool(extrinsic.suspect))


def suspicion_text(extrinsic: Extrinsic) -> str:
    """How likely the cause lies outside of the code, and where."""
    suspect = " ".join([extrinsic.suspect.replace("_", " "), extrinsic.name]).strip()
    chance = f"the cause may be outside this code ({extrinsic.probability:.0%})"
    return f"{chance}; suspect: {suspect}" if suspect else chance


def lines_of(item: Item) -> str:
    """Return path and lines in the form that editors open."""
    lines = f":{item.start}" if item.start else ""
    if item.end > item.start:
        lines += f"-{item.end}"
    return f"{layout.one_line(item.path)}{lines}"
