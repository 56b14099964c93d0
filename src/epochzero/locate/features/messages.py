"""Text of the report that occurs in the string literals of a file: its error messages."""

from __future__ import annotations

import numpy as np

from epochzero.locate.features.context import Context, share
from epochzero.locate.index import Columns

RARE_SHARE = 0.1
FEWEST_FILES = 3


def messages(context: Context) -> Columns:
    """Word trigrams that lines of the report and literals of a file share."""
    lines = context.query.phrases
    n = context.size
    best, total = np.zeros(n, np.float32), np.zeros(n, np.float32)
    if lines:
        every = np.unique(np.concatenate(lines))
        held = context.corpus.phrases.holders(every)
        often = held.sum(axis=0)
        # Text in many files is boilerplate.
        held &= often <= max(FEWEST_FILES, RARE_SHARE * n)
        total = (held / np.sqrt(np.maximum(1, often))).sum(axis=1)
        for line in lines:
            matched = held[:, np.searchsorted(every, line)].sum(axis=1)
            best = np.maximum(best, matched / len(line))
    return {
        "message_share": np.asarray(best, np.float32),
        "message_total": share(np.asarray(total, np.float32)),
    }
