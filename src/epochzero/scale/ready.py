"""What each worker needs, made at import: once in the process that those of this machine are forked from."""

from __future__ import annotations

from epochzero.scale.work import diagnoser

__all__: list[str] = []

diagnoser((), True)
