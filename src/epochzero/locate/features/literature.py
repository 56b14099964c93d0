"""Techniques of the literature as features: what they see in structure, traces and past fixes."""

from __future__ import annotations

import numpy as np

from epochzero.locate.features.context import Context, share
from epochzero.locate.index import Columns
from epochzero.locate.techniques.blia import BLIA
from epochzero.locate.techniques.bluir import BLUiR


def literature(context: Context) -> Columns:
    """The scores of BLUiR and BLIA."""
    return {
        technique.name: share(
            np.asarray(technique.scores(context.query, context.corpus), np.float32)
        )
        for technique in (BLUiR(), BLIA())
    }
