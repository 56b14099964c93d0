"""How rankings are named in every output format: places, types of bugs, causes outside of the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.cli import layout

if TYPE_CHECKING:
    from epochzero.locate.model import Extrinsic, Item, Reranking

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


def reranking_text(used: Reranking) -> str:
    """Which language model was asked, and what it took."""
    what = f"reordered {used.candidates} places" if used.applied else "gave no order"
    text = f"{layout.one_line(used.model or 'the model')} at {used.server} {what}"
    if not used.requests:
        return f"{text} (stored answer)" if used.applied else text
    tokens = f"{used.prompt_tokens:,} prompt and {used.completion_tokens:,} completion tokens"
    cost = "" if used.cost_usd is None else f", ${used.cost_usd:.4f}"
    return f"{text} in {layout.counted(used.requests, 'request')}: {tokens}{cost}"


def lines_of(item: Item) -> str:
    """Return path and lines in the form that editors open."""
    lines = f":{item.start}" if item.start else ""
    if item.end > item.start:
        lines += f"-{item.end}"
    return f"{layout.one_line(item.path)}{lines}"
