"""Small corpora for the techniques."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from epochzero.code import History
from epochzero.code.parse import parse
from epochzero.locate.corpus import Corpus
from epochzero.locate.report import PastReport

MakeCorpus = Callable[..., Corpus]


@pytest.fixture
def corpus_of() -> MakeCorpus:
    """Makes a corpus of files that are given as text."""

    def make(
        files: Mapping[str, str],
        history: History | None = None,
        past: Sequence[PastReport] = (),
    ) -> Corpus:
        parsed = [parse(text.encode(), path) for path, text in files.items()]
        return Corpus(list(files), parsed, history, past)

    return make
