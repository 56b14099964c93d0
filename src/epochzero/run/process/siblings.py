"""The other ranks of an attempt, as their journals report: each has a supervisor of its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from epochzero.errors import InputError
from epochzero.run.records.identity import rank_of
from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import End

_MOST = 64
"""Ranks that are looked at: those of a node have numbers near each other."""
_TAIL = 1 << 20
"""Bytes of a journal in which its end is looked for."""


def failed_sibling(folder: Path) -> int | None:
    """The rank near this one that has failed by itself; None where none has reported this yet.

    Args:
        folder: of this rank's attempt.
    """
    own = rank_of(folder)
    if own is None:
        return None
    others = {
        rank: other
        for other in folder.parent.glob(f"{folder.name.partition('-r')[0]}-r*")
        if (rank := rank_of(other)) is not None and rank != own
    }
    nearest = sorted(others, key=lambda rank: abs(rank - own))[:_MOST]
    return next((rank for rank in nearest if _failed(others[rank] / NAME)), None)


def _failed(journal: Path) -> bool:
    with suppress(InputError, OSError):
        start = max(0, journal.stat().st_size - _TAIL)
        return any(
            isinstance(record, End) and bool(record.exit_code) and not record.why
            for _, record in read_journal(journal, start)
        )
    return False
