"""The techniques of the literature, by the names that they are chosen by.

Each is made without arguments, with the parameters of its paper, or, where its paper learns, with
the model of the package; those are `TRAINED`. Spectrum-based techniques answer no report but runs of
tests: they are in `epochzero.locate.techniques.spectrum`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from epochzero.locate.techniques.base import Technique
from epochzero.locate.techniques.blia import BLIA
from epochzero.locate.techniques.bluir import BLUiR
from epochzero.locate.techniques.bm25 import BM25
from epochzero.locate.techniques.buglocator import BugLocator
from epochzero.locate.techniques.dnnloc import shipped as dnnloc

__all__ = ["TECHNIQUES", "TRAINED", "Technique"]

TECHNIQUES: Mapping[str, Callable[[], Technique]] = MappingProxyType(
    {"bm25": BM25, "buglocator": BugLocator, "bluir": BLUiR, "blia": BLIA, "dnnloc": dnnloc}
)
"""Makes each technique."""
TRAINED = frozenset({"dnnloc"})
"""Those whose model has learned from bugs: on these bugs it must not be measured."""
