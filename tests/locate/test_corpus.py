"""What a corpus does with a query that is too large for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochzero.code import History, Repository
from epochzero.locate import corpus as module
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import PastReport, Report

if TYPE_CHECKING:
    from conftest import Made

NOISE = "\n".join(f"lorem{n} ipsum{n} dolor{n}" for n in range(2000))
REPORT = Report("The shard was cut off", f"{NOISE}\n`read_shard` raises\n{NOISE}")


def test_a_query_that_fits_is_left_alone(corpus: Corpus) -> None:
    query = query_of(REPORT)
    assert len(query.terms) > 2000
    assert corpus.narrowed(query) is query


def test_of_a_query_that_does_not_fit_the_telling_words_stay(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 8 * len(corpus))
    monkeypatch.setattr(module, "FEWEST_WORDS", 4)
    query = corpus.narrowed(query_of(REPORT))
    assert {"shard", "read_shard", "cut"} <= set(query.terms)
    assert len(query.terms) == len(query.weights) == len(query.hashes) == 8
    assert "read_shard" in query.identifiers["all"]
    assert len(query.identifiers["all"]) <= 8
    assert len(query.phrases) <= 8
    assert query.report is REPORT
    assert corpus.find(query).fields["whole"].shape == (len(corpus), 8)


def test_a_past_fix_counts_for_the_file_as_it_is_called_now(project: Made) -> None:
    def past(*paths: str) -> PastReport:
        return PastReport(Report("Shards"), 0.0, paths)

    repository = Repository(project.folder)
    before = past("src/data/loader.py", "gone.py")
    project.git("mv", "src/data/loader.py", "src/data/shards.py")
    project.commit("Move")
    project.git("mv", "src/data/shards.py", "src/shards.py")
    project.commit("Move again")
    history = History(repository)
    moved = Corpus.of(repository.snapshot(), history=history, past=[before, past("src/model.py")])
    assert [one.fixed for one in moved.past] == [("src/shards.py", "gone.py"), ("src/model.py",)]
    project.write("src/data/loader.py", "another = 1\n")
    project.commit("The old name is used anew")
    corpus = Corpus.of(repository.snapshot(), history=History(repository), past=[before])
    assert corpus.past == (before,)
    assert corpus.with_known(None, [before]).past == (before,)


def test_copies_of_other_projects_are_not_searched(project: Made) -> None:
    for path in ("docs/_static/jquery.js", "web/node_modules/left/pad.ts", "web/app.js"):
        project.write(path, "function shuffle() { return 1 }\n")
    for path in ("core/vendor/golang.org/x/sys/errors.go", "core/sender.go"):
        project.write(path, "package core\n\nfunc Shuffle() int { return 1 }\n")
    project.commit("Copies")
    corpus = Corpus.of(Repository(project.folder).snapshot())
    assert {"web/app.js", "core/sender.go"} == {p for p in corpus.paths if not p.endswith(".py")}
