"""Which files a report names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from epochzero.code import History, Repository
from epochzero.locate.corpus import Corpus
from epochzero.locate.mentions import Mention, mentions
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

if TYPE_CHECKING:
    from conftest import Made

MakeCorpus = Callable[[Mapping[str, str]], Corpus]


def named(text: str, corpus: Corpus, title: str = "Crash") -> list[tuple[str, str]]:
    return [(m.kind, corpus.paths[m.document]) for m in all_of(text, corpus, title)]


def all_of(text: str, corpus: Corpus, title: str = "Crash") -> tuple[Mention, ...]:
    return mentions(query_of(Report(title, text)), corpus)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('  File "/home/me/venv/src/data/loader.py", line 12, in read_shard', "frame"),
        ('  File "C:\\work\\src\\data\\loader.py", line 12, in read_shard', "frame"),
        ("It happens in src/data/loader.py when it reads", "path"),
        ("see loader.py", "path"),
        ("`data.loader.ShardReader` fails", "module"),
    ],
)
def test_a_file_is_named(corpus: Corpus, text: str, expected: str) -> None:
    assert named(text, corpus) == [(expected, "src/data/loader.py")]


@pytest.mark.parametrize(
    "text",
    [
        "nothing of the kind",
        "loader.cc crashes",  # another language's file of the same stem
        'File "/usr/lib/python3/site-packages/other/train.py", line 3, in main',
        "train.py is how everybody calls the script",
        "self.model is None",
    ],
)
def test_what_names_no_file(corpus: Corpus, text: str) -> None:
    assert named(text, corpus) == []


def test_the_longest_agreement_is_meant(make_corpus: MakeCorpus) -> None:
    corpus = make_corpus({"a/io/read.py": "", "b/io/read.py": "", "read.py": ""})
    assert named("in b/io/read.py", corpus) == [("path", "b/io/read.py")]
    assert {path for _, path in named("in io/read.py", corpus)} == {"a/io/read.py", "b/io/read.py"}


def test_inner_frames_and_longer_paths_are_stronger(corpus: Corpus) -> None:
    first, last = all_of(
        '  File "/x/src/train.py", line 6, in train\n'
        '  File "/x/src/data/loader.py", line 12, in read_shard\n',
        corpus,
    )
    assert 0 < first.strength < last.strength <= 1
    (short,) = all_of("loader.py", corpus)
    (long,) = all_of("src/data/loader.py", corpus)
    assert 0 < short.strength < long.strength <= 1


def test_a_file_that_was_moved_is_named_by_its_former_path(project: Made) -> None:
    project.write("tools/io/loader.py", "def load():\n    pass\n")
    project.commit("Another loader")
    project.git("mv", "src/data/loader.py", "src/reading.py")
    project.commit("Move the loader")
    repository = Repository(project.folder)
    corpus = Corpus.of(repository.snapshot(), history=History(repository))
    frame = '  File "/venv/lib/src/data/loader.py", line 12, in read_shard'
    assert named(frame, corpus) == [("frame", "src/reading.py")]
    # A file of today that agrees as well, or a name alone, is no former file.
    assert named("see tools/io/loader.py", corpus) == [("path", "tools/io/loader.py")]
    assert named("see loader.py", corpus) == [("path", "tools/io/loader.py")]
    assert named(frame, Corpus.of(repository.snapshot())) == []
