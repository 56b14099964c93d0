"""Lines of a function for a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from epochzero.locate.corpus import Corpus
from epochzero.locate.lines import FunctionLine, LineScorer
from epochzero.locate.mentions import mentions
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

SOURCE = '''\
def read(path, limit):
    """Reads samples up to the limit."""
    # The limit counts samples.
    samples = parse(path)
    """
    The limit in a text of its own.
    """
    if len(samples) > limit:
        samples = samples[:limit]
    return checksum(samples)
'''


@pytest.fixture
def ranked(make_corpus: Callable[[Mapping[str, str]], Corpus]) -> Callable[..., list[FunctionLine]]:
    corpus = make_corpus({"io/read.py": SOURCE, "other.py": "value = 1\n"})

    def rank(title: str, text: str = "") -> list[FunctionLine]:
        query = query_of(Report(title, text))
        scorer = LineScorer(query, corpus, mentions(query, corpus))
        unit = corpus.parsed[0].units[0]
        return sorted(
            scorer.lines(0, (unit.start, unit.end), SOURCE.split("\n"), 1.0),
            key=lambda line: -line.score,
        )

    return rank


def test_the_line_with_the_words_of_the_report(ranked: Callable[..., list[FunctionLine]]) -> None:
    assert ranked("checksum is wrong")[0].text == "return checksum(samples)"
    assert [line.number for line in ranked("checksum is wrong")] == [10]


def test_comments_and_docstrings_are_no_candidates(
    ranked: Callable[..., list[FunctionLine]],
) -> None:
    assert {line.number for line in ranked("limit counts samples")} == {1, 4, 8, 9, 10}


def test_the_line_that_a_notebook_points_at_comes_first(
    ranked: Callable[..., list[FunctionLine]],
) -> None:
    trace = "~/x/io/read.py in read(path, limit)\n      3 \n----> 9     samples = parse(path)\n"
    best = ranked("limit of samples", trace)[0]
    assert (best.number, best.shown) == (4, True), "its number may be of another version"


def test_lines_of_the_traceback_come_first(ranked: Callable[..., list[FunctionLine]]) -> None:
    trace = 'File "/x/io/read.py", line 4, in read\n    samples = parse(path)\n'
    best = ranked("limit of samples", trace)[0]
    assert (best.number, best.shown) == (4, True)


def test_a_shown_line_is_found_where_it_is_now(ranked: Callable[..., list[FunctionLine]]) -> None:
    trace = 'File "/x/io/read.py", line 104, in read\n    samples = samples[:limit]\n'
    assert ranked("Crash", trace)[0].number == 9


def test_the_source_of_a_frame_is_that_of_its_file_alone(
    make_corpus: Callable[[Mapping[str, str]], Corpus],
) -> None:
    source = "def read(path):\n    samples = parse(path)\n"
    corpus = make_corpus({"io/read.py": source, "other.py": source})
    query = query_of(
        Report("Crash", 'File "/x/io/read.py", line 9, in read\n    samples = parse(path)\n')
    )
    scorer = LineScorer(query, corpus, mentions(query, corpus))
    shown = {
        corpus.paths[document]: [
            line.number
            for line in scorer.lines(document, (1, 2), source.split("\n"), 1.0)
            if line.shown
        ]
        for document in range(2)
    }
    assert shown == {"io/read.py": [2], "other.py": []}


def test_the_innermost_frame_comes_first(ranked: Callable[..., list[FunctionLine]]) -> None:
    outer = 'File "/x/io/read.py", line 4, in read\n    samples = parse(path)\n'
    inner = 'File "/x/io/read.py", line 9, in read\n    samples = samples[:limit]\n'
    assert ranked("Crash", outer + inner)[0].number == 9
    assert ranked("Crash", inner + outer)[0].number == 4


def test_nothing_in_common(ranked: Callable[..., list[FunctionLine]]) -> None:
    assert ranked("unrelated") == []
