"""Reasons that a person can check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from epochzero.code import History, Repository
from epochzero.locate.corpus import Corpus
from epochzero.locate.explain import Explainer
from epochzero.locate.mentions import mentions
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

if TYPE_CHECKING:
    from conftest import Made

FILE = "src/data/loader.py"


def reasons(corpus: Corpus, title: str, text: str = "", function: str = "") -> dict[str, str]:
    query = query_of(Report(title, text))
    explainer = Explainer(query, corpus, mentions(query, corpus))
    document = corpus.number[FILE]
    units = corpus.parsed[document].units
    place = next((n for n, unit in enumerate(units) if unit.name == function), None)
    given = (document,) if place is None else (document, units[place], place)
    found = explainer.reasons(*given)
    assert len({reason.kind for reason in found}) == len(found)
    return {reason.kind: reason.text for reason in found}


def test_a_frame(corpus: Corpus) -> None:
    trace = 'File "/x/src/train.py", line 6, in train\nFile "/x/src/data/loader.py", line 14, in '
    assert reasons(corpus, "Crash", f"{trace}read_shard")["frame"] == (
        "the traceback ends here: read_shard, line 14"
    )
    deeper = f'{trace}read_shard\nFile "/lib/os.py", line 3, in stat'
    assert "passes here" in reasons(corpus, "Crash", deeper)["frame"]
    assert "frame" in reasons(corpus, "Crash", deeper, "read_shard")
    assert "frame" not in reasons(corpus, "Crash", deeper, "shuffle")


def test_a_path_or_a_module(corpus: Corpus) -> None:
    assert reasons(corpus, "Crash", "see data/loader.py")["path"] == (
        "the report names data/loader.py"
    )
    link = "https://git.example.org/a/b/blob/0c1d/data/loader.py#L7"
    assert reasons(corpus, "Crash", link)["path"] == "the report names src/data/loader.py"
    assert reasons(corpus, "loader.py crashes")["path"] == "the title names loader.py"
    assert reasons(corpus, "Crash", "data.loader.x")["path"] == (
        "the report names the module data.loader"
    )


def test_names_that_it_defines(corpus: Corpus) -> None:
    text = "`shuffle` after ShardReader, not `train`"
    assert reasons(corpus, "Crash", text)["name"] == (
        "defines ShardReader and shuffle, which the report names"
    )
    assert "shuffle," in reasons(corpus, "Crash", text, "shuffle")["name"]


def test_names_that_everything_defines_are_none(
    make_corpus: Callable[[Mapping[str, str]], Corpus],
) -> None:
    same = {f"net{n}.py": "class A:\n    def forward(self):\n        pass\n" for n in range(20)}
    corpus = make_corpus({FILE: "def forward():\n    pass\n", **same})
    assert "name" not in reasons(corpus, "Crash in `forward`")


def test_words_as_the_report_writes_them(corpus: Corpus) -> None:
    told = reasons(corpus, "Shuffling samples by seeds")["words"]
    assert "shuffling (" in told
    assert "seeds (" in told
    assert sum(map(int, (part.split("%")[0] for part in told.split("(")[1:]))) <= 101


def test_words_of_every_report_are_no_reason(
    make_corpus: Callable[[Mapping[str, str]], Corpus],
) -> None:
    corpus = make_corpus({FILE: "next_line = 'issues in a file: shuffling'\n", "b.py": "x = 1\n"})
    text = "Shuffling issues, next line. Steps to reproduce the error: run it"
    found = reasons(corpus, "Shuffling", text)["words"]
    assert "shuffling" in found
    assert not {"issues", "next", "line", "file"} & set(found.replace(",", " ").split())


def test_the_parts_of_a_name_are_not_told_beside_it(corpus: Corpus) -> None:
    told = reasons(corpus, "Wrong: read_shard")["words"]
    assert told.count("shard") == 1
    assert "read_shard" in told


def test_a_message_in_a_string_literal(corpus: Corpus) -> None:
    text = "Then\nValueError: the shard was cut off in the middle of a sample\nand it ends"
    assert "cut off in the middle" in reasons(corpus, "Crash", text)["message"]
    assert "message" not in reasons(corpus, "Crash", "nothing was read from there at all")


def test_the_frame_of_a_traceback_is_no_message(
    make_corpus: Callable[[Mapping[str, str]], Corpus],
) -> None:
    head = "Traceback (most recent call last):"
    corpus = make_corpus({FILE: f"HEAD = '{head}'\n", "other.py": ""})
    assert "message" not in reasons(corpus, head, f"\n{head}\n")


def test_the_fix_that_is_most_like_the_report(project: Made) -> None:
    repository = Repository(project.folder)
    corpus = Corpus.of(repository.snapshot()).with_known(History(repository), ())
    told = reasons(corpus, "truncated shards are read")["history"]
    assert told.startswith("one fix in the year before, on 20")
    assert told.endswith(": Fix the check of truncated shards")


def test_nothing_in_common(corpus: Corpus) -> None:
    assert reasons(corpus, "unrelated") == {}
