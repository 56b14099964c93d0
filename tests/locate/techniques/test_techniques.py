"""What holds for every technique."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques import TECHNIQUES

MakeCorpus = Callable[..., Corpus]

ALONE = [name for name, technique in TECHNIQUES.items() if not technique.extra]
"""Those that need no extra."""
FILES = {
    "pkg/trainer.py": "class Trainer:\n    def fit(self):\n        '''Fits the model.'''\n",
    "pkg/loader.py": "def load_batch(path):\n    # reads a batch from disk\n    return path\n",
    "pkg/empty.py": "",
    "pkg/broken.py": "def (:\n",
}


@pytest.mark.parametrize("name", ALONE)
def test_a_report_finds_the_file_that_it_speaks_of(corpus_of: MakeCorpus, name: str) -> None:
    technique = TECHNIQUES[name].make()
    corpus = corpus_of(FILES)
    assert technique.name == name
    for text, path in [
        ("Trainer.fit fails", "pkg/trainer.py"),
        ("load_batch: wrong batch", "pkg/loader.py"),
    ]:
        scores = technique.scores(query_of(Report(text)), corpus)
        assert corpus.paths[int(scores.argmax())] == path


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize(
    "text", ["it is not", "Größe 模型", "x " * 5000, "nothing of this is there"]
)
@pytest.mark.parametrize("files", [{}, {"empty.py": ""}, FILES])
def test_scores_are_numbers_whatever_is_asked_of_whatever(
    corpus_of: MakeCorpus, name: str, text: str, files: dict[str, str]
) -> None:
    scores = TECHNIQUES[name].make().scores(query_of(Report(text, text)), corpus_of(files))
    assert scores.shape == (len(files),)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
