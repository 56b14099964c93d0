"""How diagnoses are named in every output format: category and title, ranks, consequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from epochzero import taxonomy
from epochzero.cli import layout
from epochzero.number_formats import counted, ranks_text

if TYPE_CHECKING:
    from epochzero.diagnose.model import Consequence, Diagnosis, Root


def title_of(found: Diagnosis) -> str:
    """Category and title, once where they are the same."""
    category = taxonomy.categories()[found.category].title
    return category if found.title in ("", category) else f"{category}: {found.title}"


def origin(root: Root) -> list[str]:
    """Rank, host and time of the first error, as far as they are known."""
    parts = [f"rank {root.rank}"] if root.rank is not None else []
    if root.host:
        parts.append(f"host {root.host}")
    if root.time is not None:
        dated = root.time > 86_400
        stamp = datetime.fromtimestamp(root.time, UTC)
        parts.append(stamp.strftime("%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S"))
    return parts


def consequences(cascade: Sequence[Consequence], top: int) -> Iterator[str]:
    """Consequences; equal ones of several ranks share a line."""
    groups: dict[str, list[Consequence]] = {}
    for consequence in cascade:
        groups.setdefault(consequence.title or consequence.text[:60], []).append(consequence)
    shown = sorted(groups.values(), key=len, reverse=True)
    for group in shown[:top]:
        ranks = sorted({c.rank for c in group if c.rank is not None})
        whose = f"{ranks_text(ranks)}: " if ranks else ""
        yield f"{whose}{group[0].title or layout.shorten(group[0].text, 140)}"
    if len(shown) > top:
        yield f"and {counted(len(shown) - top, 'more consequence')} (--top {len(shown)} shows all)"
