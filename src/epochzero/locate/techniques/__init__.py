"""The techniques by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epochzero.locate.techniques.base import Technique
from epochzero.locate.techniques.bm25 import BM25

__all__ = ["TECHNIQUES", "Technique"]

TECHNIQUES: Mapping[str, Callable[[], Technique]] = {"bm25": BM25}
