"""What a file is: its size, its place, its kind."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np

from epochzero.locate.features.context import Context, share
from epochzero.locate.index import Columns

_ASIDE = re.compile(
    r"(?:^|/)(?:examples?|\w+_examples|demos?|docs?|docker|scripts?|tools?|benchmarks?|contrib"
    r"|samples?|tutorials?|legacy|experimental|ci|\.github|\.circleci|build|third_?party|vendor"
    r"|notebooks?|recipes?|projects?)(?:/|$)",
    re.IGNORECASE,
)
_SET_UP = frozenset({"setup", "version", "_version", "conf", "__version__", "__about__"})
_ON_EXAMPLES = re.compile(r"\bexamples?\b|tutorial|\bdocs?\b|documentation", re.IGNORECASE)


def shape(context: Context) -> Columns:
    """Properties of files; and of the query and the corpus, which show how reliable other features are."""
    corpus, n = context.corpus, context.size
    lengths = context.found.lengths["whole"]
    units = np.diff(corpus.index.unit_first)
    first = Counter(parts[0] for parts in corpus.parts)
    text = context.query.texts["all"]

    def flags(held: list[bool]) -> np.ndarray:
        return np.array(held, np.float32)

    def same(value: float) -> np.ndarray:
        return np.full(n, value, np.float32)

    return {
        "words": np.log1p(lengths),
        "words_share": share(lengths),
        "units": np.log1p(units).astype(np.float32),
        "raises": np.log1p([parsed.raises for parsed in corpus.parsed]).astype(np.float32),
        "depth": np.array([len(parts) for parts in corpus.parts], np.float32),
        "is_init": flags([parts[-1] == "__init__" for parts in corpus.parts]),
        "is_set_up": flags([parts[-1] in _SET_UP for parts in corpus.parts]),
        "is_aside": flags([bool(_ASIDE.search(p.rpartition("/")[0])) for p in corpus.paths]),
        "top_folder": np.array([first[parts[0]] / n for parts in corpus.parts], np.float32),
        "files": same(math.log(max(1, n))),
        "query_words": same(math.log1p(sum(context.query.words["all"].values()))),
        "title_words": same(sum(context.query.words["summary"].values())),
        "on_examples": same(bool(_ON_EXAMPLES.search(text))),
    }
