"""Each group of features finds what it is there for, in a small project made here."""

from __future__ import annotations

import numpy as np
import pytest

from epochzero.code.parse import parse
from epochzero.locate.corpus import Corpus
from epochzero.locate.features import features_of
from epochzero.locate.query import query_of
from epochzero.locate.report import PastReport, Report

FILES = {
    "src/pkg/__init__.py": "from pkg.train import fit\n",
    "src/pkg/train.py": '''"""Training."""
from pkg.losses.smooth import LabelSmoother


def fit(model, loader):
    loss = LabelSmoother(0.1)
    for x, y in loader:
        loss(model(x), y)
''',
    "src/pkg/losses/smooth.py": '''"""Label smoothing."""


class LabelSmoother:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def forward(self, x, y):
        if not 0 <= self.epsilon < 1:
            raise ValueError("the smoothing factor must lie between zero and one")
        return x / y
''',
    "src/pkg/data.py": "def load(path):\n    return open(path).read()\n",
    "examples/demo.py": "from pkg.data import load\n\nload('x')\n",
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    past = PastReport(Report("The smoothing is wrong", ""), 0.0, ("src/pkg/losses/smooth.py",))
    parsed = [parse(text.encode(), path) for path, text in FILES.items()]
    return Corpus(list(FILES), parsed, None, (past,))


def columns(corpus: Corpus, title: str, text: str = "") -> dict[str, dict[str, float]]:
    """The features of each file, by path."""
    names, table = features_of(query_of(Report(title, text, opened=0.0)), corpus)
    assert np.isfinite(table).all()
    return {
        path: dict(zip(names, row, strict=True))
        for path, row in zip(corpus.paths, table.tolist(), strict=True)
    }


def best(found: dict[str, dict[str, float]], name: str) -> str:
    ordered = sorted(found, key=lambda path: -found[path][name])
    assert found[ordered[0]][name] > found[ordered[1]][name], f"{name} does not tell"
    return ordered[0]


SMOOTH = "src/pkg/losses/smooth.py"


def test_frames(corpus: Corpus) -> None:
    text = """Traceback (most recent call last):
  File "run.py", line 1, in <module>
  File "/home/me/src/pkg/train.py", line 8, in fit
  File "/home/me/src/pkg/losses/smooth.py", line 11, in forward
ZeroDivisionError: division by zero"""
    found = columns(corpus, "It fails", text)
    assert best(found, "frame_innermost") == SMOOTH
    assert best(found, "frame_function") == SMOOTH
    assert found["src/pkg/train.py"]["frame_innermost"] == 0.5
    assert found["src/pkg/data.py"]["frame_share"] == 0


def test_paths_modules_and_stems(corpus: Corpus) -> None:
    assert best(columns(corpus, "Bug", "see pkg/losses/smooth.py"), "path_in_text") == SMOOTH
    assert best(columns(corpus, "Bug in losses/smooth.py"), "path_in_title") == SMOOTH
    assert best(columns(corpus, "x", "pkg.losses.smooth.LabelSmoother"), "module_in_text") == SMOOTH
    assert best(columns(corpus, "data is not read"), "stem_in_title") == "src/pkg/data.py"


def test_names_and_messages(corpus: Corpus) -> None:
    found = columns(corpus, "`LabelSmoother` fails")
    assert best(found, "defines_all") == SMOOTH
    assert best(found, "class_summary") == SMOOTH
    assert found["src/pkg/train.py"]["uses_all"] > found["src/pkg/data.py"]["uses_all"]
    said = columns(corpus, "x", "ValueError: the smoothing factor must lie between zero and one")
    assert best(said, "message_share") == SMOOTH


def test_neighbours(corpus: Corpus) -> None:
    found = columns(corpus, "label smoothing factor epsilon")
    assert best(found, "guess") == SMOOTH
    assert best(found, "imports_best") == "src/pkg/train.py"
    assert found["examples/demo.py"]["is_aside"] == 1
    assert found["src/pkg/__init__.py"]["is_init"] == 1


def test_earlier_reports(corpus: Corpus) -> None:
    found = columns(corpus, "smoothing gives wrong numbers")
    assert best(found, "similar_reports") == SMOOTH


def test_a_report_without_a_known_word(corpus: Corpus) -> None:
    found = columns(corpus, "Это не работает 这不行")
    assert {found[path]["guess"] for path in found} == {0.0}
