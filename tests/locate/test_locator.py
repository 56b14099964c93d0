"""`locate` and `Locator`: what is searched, what is used, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import epochzero
from epochzero.code import Cache, History
from epochzero.errors import InputError
from epochzero.locate import (
    LEVELS,
    METHODS,
    Locator,
    PastReport,
    Report,
    locate,
    query_of,
    query_of_diagnosis,
    with_diagnosis,
)
from epochzero.locate.corpus import Corpus
from epochzero.locate.model import SCHEMA
from epochzero.locate.query import Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Made
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Level

REPORT = Report(
    "Shards that were cut off in the middle are read", "`read_shard` should refuse them"
)
FILE = "src/data/loader.py"


def test_the_file_with_the_bug_comes_first(project: Made) -> None:
    found = locate(REPORT, project.folder)
    assert found.items[0].path == FILE
    assert found.commit == project.git("rev-parse", "HEAD")
    assert found.searched == 3  # neither the test nor the README
    assert [item.score for item in found.items] == sorted(
        (item.score for item in found.items), reverse=True
    )
    assert json.loads(json.dumps(found.to_dict()))["schema"] == SCHEMA


def test_a_shallow_clone_is_told_of(project: Made, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    project.git("clone", "-q", "--depth=1", f"file://{project.folder}", str(shallow))
    assert "shallow" in " ".join(locate(REPORT, shallow).notes)
    assert locate(REPORT, shallow, method="bm25").notes == ()  # it reads no history
    assert locate(REPORT, project.folder).notes == ()


def test_the_public_api_is_the_same(project: Made) -> None:
    assert {"locate", "Locator", "Ranking", "Report"} <= set(epochzero.__all__)
    assert epochzero.Locator is Locator
    assert epochzero.locate(REPORT, project.folder) == locate(REPORT, project.folder)


def test_the_function_and_the_line(project: Made) -> None:
    function = locate(REPORT, project.folder, level="function").items[0]
    assert (function.unit, function.start, function.end) == ("ShardReader.read_shard", 12, 16)
    line = locate("Shards cut off in the middle", project.folder, level="line").items[0]
    assert (line.path, line.start, line.end) == (FILE, line.start, line.start)
    assert line.code == 'raise ValueError("the shard was cut off in the middle of a sample")'
    assert line.unit == "ShardReader.read_shard"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_method_at_every_level(project: Made, method: str, level: Level) -> None:
    found = locate(REPORT, project.folder, level=level, method=method, explain=True)
    assert found.items[0].path == FILE
    assert found.items[0].reasons
    assert (found.level, found.method) == (level, method)


def test_a_line_of_nested_functions_is_given_once(made: Made) -> None:
    made.write(
        "a.py", "def outer():\n    def inner():\n        return checksum\n    return inner\n"
    )
    made.commit()
    items = locate("the checksum is wrong", made.folder, level="line").items
    assert len({item.start for item in items}) == len(items)
    assert 3 in {item.start for item in items}


# -- What is searched by -----------------------------------------------------------------------


def test_text_report_query_and_diagnosis(project: Made, diagnose: Callable[..., Diagnosis]) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/x/src/data/loader.py", line 14, in read_shard\n'
        '    raise ValueError("the shard was cut off")\nValueError: the shard was cut off\n'
    )
    for subject in (REPORT.title, REPORT, query_of(REPORT), diagnose(log)):
        assert locate(subject, project.folder).items[0].path == FILE
    both = with_diagnosis(Report("It stops", "No idea why", opened=7.0), diagnose(log))
    assert (both.report.title, both.report.opened) == ("It stops", 7.0)
    assert "No idea why" in both.report.text
    assert both.frames[-1].function == "read_shard"


@pytest.mark.parametrize("installed", ["/env/lib/python3.11/site-packages", "/home/me/project"])
def test_the_frames_of_a_log_are_found_whoever_called(
    project: Made, diagnose: Callable[..., Diagnosis], installed: str
) -> None:
    """The repository may be the library that the failing job called, or call the one that failed."""
    own = f'  File "{installed}/src/data/loader.py", line 14, in read_shard\n    read(name)\n'
    foreign = '  File "/env/lib/python3.11/site-packages/other/api.py", line 3, in go\n    go()\n'
    script = '  File "/home/me/job.py", line 1, in <module>\n    main()\n'
    head, error = "Traceback (most recent call last):\n", "OSError: [Errno 5] I/O trouble\n"
    for frames in (script + foreign + own, script + own + foreign, foreign + own):
        log = head + frames + error
        query, report = query_of_diagnosis(diagnose(log)), query_of(Report("It fails", log))
        assert query.frames == report.frames
        assert set(query.texts["error"].split("\n")) == {error.strip()}
        assert query.texts["traceback"].count(error.strip()) == 1
        assert locate(query, project.folder).items[0].path == FILE


def test_places_without_anything_in_common_are_not_given(project: Made) -> None:
    assert [item.path for item in locate("Encoder of hidden states", project.folder).items] == [
        "src/model.py"
    ]
    assert locate("训练时程序崩溃", project.folder).items == ()
    assert locate("训练时程序崩溃", project.folder, level="line").items == ()


def test_what_kind_of_bug_it_is(project: Made) -> None:
    project.write("src/data/__init__.py", "")
    project.commit()
    trace = (
        'Traceback (most recent call last):\n  File "/lib/site-packages/{0}/a.py", line 3, in f\n'
    )
    found = locate(Report("Crash", f"{trace.format('otherlib')}KeyError: 1"), project.folder)
    assert found.bug_type in {"model", "training", "tensor", "api", "gpu", "ndl"}
    assert found.extrinsic is not None
    assert (found.extrinsic.suspect, found.extrinsic.name) == ("library", "otherlib")
    own = locate(Report("Crash", f"{trace.format('data')}KeyError: 1"), project.folder).extrinsic
    assert own is not None
    assert own.name != "data"


def test_top(project: Made) -> None:
    assert len(locate(REPORT, project.folder, top=1).items) == 1


# -- What is searched --------------------------------------------------------------------------


def test_a_revision(project: Made) -> None:
    project.write("src/new.py", "def read_shard_again():\n    pass\n")
    project.commit()
    assert locate("read_shard_again", project.folder).items[0].path == "src/new.py"
    earlier = locate("read_shard_again", project.folder, "HEAD~1")
    assert "src/new.py" not in {item.path for item in earlier.items}
    assert earlier.commit == project.git("rev-parse", "HEAD~1")


def test_the_work_tree(project: Made) -> None:
    assert locate(REPORT, project.folder, None).commit == project.git("rev-parse", "HEAD")
    project.write("src/new.py", "def read_shard_again():\n    pass\n")
    locator = Locator(project.folder)
    found = locator.locate("read_shard_again", None)
    assert (found.items[0].path, found.commit) == ("src/new.py", "")
    project.write("src/new.py", "def something_else():\n    pass\n")
    assert "src/new.py" not in {i.path for i in locator.locate("read_shard_again", None).items}


def test_a_bare_repository(project: Made, tmp_path: Path) -> None:
    project.git("clone", "-q", "--bare", str(project.folder), str(tmp_path / "bare.git"))
    assert locate(REPORT, tmp_path / "bare.git").items[0].path == FILE
    with pytest.raises(InputError, match="working tree"):
        locate(REPORT, tmp_path / "bare.git", None)


def test_submodules_links_and_odd_files(project: Made, tmp_path: Path) -> None:
    other = tmp_path / "other"
    project.git("clone", "-q", str(project.folder), str(other))
    project.git("submodule", "add", "-q", str(other), "third")
    os.symlink("..", project.folder / "src" / "loop")
    project.write(b"src/\xff\xfe.py", b"read_shard = '\xff\xfe'\n")
    project.write("src/blob.py", b"\0\1\2" * 1000)
    project.write("src/broken.py", "def (:\n" * 50)
    project.commit()
    for rev in ("HEAD", None):
        found = locate(REPORT, project.folder, rev, level="line")
        assert found.items[0].path == FILE
        assert not [item for item in found.items if item.path.startswith("third/")]


def test_nothing_is_written_beside_the_cache(project: Made, tmp_path: Path) -> None:
    def everything() -> set[Path]:
        return {path for path in tmp_path.rglob("*") if tmp_path / "cache" not in path.parents}

    (tmp_path / "cache").mkdir()
    before = everything()
    locate(REPORT, project.folder, explain=True, cache=Cache(tmp_path / "cache"))
    locate(REPORT, project.folder, None, level="line", cache=Cache(tmp_path / "cache"))
    assert everything() == before
    assert {path.name for path in (tmp_path / "cache").iterdir()} >= {"code.sqlite", "history"}


def test_a_corrupt_cache(project: Made, tmp_path: Path) -> None:
    expected = locate(REPORT, project.folder, explain=True)
    (tmp_path / "code.sqlite").write_bytes(b"nonsense" * 1000)
    cache = Cache(tmp_path)
    assert locate(REPORT, project.folder, explain=True, cache=cache) == expected
    assert cache.set_aside
    assert locate(REPORT, project.folder, explain=True, cache=cache) == expected


# -- Nothing later than the report -------------------------------------------------------------


class Spy:
    """Sees the corpus that a technique is given."""

    name = "spy"
    seen: Corpus

    def scores(self, query: Query, corpus: Corpus) -> object:
        Spy.seen = corpus
        return METHODS["bm25"]().scores(query, corpus)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> type[Spy]:
    # The package's attribute of that name is the function.
    monkeypatch.setattr(sys.modules["epochzero.locate"], "METHODS", {**METHODS, "spy": Spy})
    return Spy


def test_changes_after_the_report_are_not_known(project: Made, spy: type[Spy]) -> None:
    times = [change.time for change in History(Locator(project.folder)._repository).changes]
    locator = Locator(project.folder)
    for opened, known in ((None, 3), (times[0] + 1, 3), (times[0], 2), (times[1], 1), (1, 0)):
        report = Report(REPORT.title, opened=opened)
        locator.locate(report, method="spy", explain=True)
        assert spy.seen.history is not None
        assert len(spy.seen.history.changes) == known, opened


def test_reports_closed_after_it_are_not_known(project: Made, spy: type[Spy]) -> None:
    past = [PastReport(Report(f"old {n}"), closed=float(n), fixed=(FILE,)) for n in (10, 20, 30)]
    locator = Locator(project.folder, past=past)
    for opened, known in ((20.0, ["old 10"]), (None, ["old 10", "old 20", "old 30"]), (5.0, [])):
        locator.locate(Report(REPORT.title, opened=opened), method="spy")
        assert [one.report.title for one in spy.seen.past] == known


def test_past_reports_count(project: Made) -> None:
    past = [
        PastReport(Report("Blue screen of doom"), closed=1.0, fixed=("src/model.py",)),
        PastReport(Report("Green light"), closed=1.0, fixed=("src/train.py",)),
    ]
    report = Report("Blue screen again")
    assert locate(report, project.folder, method="buglocator").items == ()
    (item,) = locate(report, project.folder, method="buglocator", past=past).items
    assert item.path == "src/model.py"
    assert [(one.kind, one.text) for one in item.reasons] == [
        ("report", "a similar report was fixed here: Blue screen of doom")
    ]


# -- Many reports ------------------------------------------------------------------------------


def test_a_revision_is_parsed_once(project: Made) -> None:
    told: list[tuple[int, int]] = []
    locator = Locator(project.folder, on_progress=lambda done, total: told.append((done, total)))
    locator.locate(REPORT)
    assert told[-1] == (3, 3)
    told.clear()
    locator.locate(Report("Network fails"), project.git("rev-parse", "HEAD"), level="function")
    assert told == []
    assert locator.locate(REPORT) == locate(REPORT, project.folder)


# -- Refused -----------------------------------------------------------------------------------


def test_what_is_refused(project: Made, tmp_path: Path) -> None:
    for arguments, said in (
        ({"level": "class"}, "unknown level 'class'; choose one of file, function, line"),
        ({"method": "magic"}, "unknown method 'magic'; choose one of learned, bjxnet, blia"),
        ({"top": 0}, "top must be at least 1"),
        ({"rev": "nope"}, "unknown revision 'nope'"),
    ):
        with pytest.raises(InputError, match=said):
            locate(REPORT, project.folder, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="empty"):
        locate(" \n", project.folder)
    with pytest.raises(InputError, match="not a git repository"):
        locate(REPORT, tmp_path)


def test_nothing_to_search(made: Made) -> None:
    made.write("README.md")
    made.write("tests/test_a.py", "a = 1\n")
    made.commit()
    with pytest.raises(InputError, match="no source files to search at HEAD"):
        locate(REPORT, made.folder)
    with pytest.raises(InputError, match="no source files to search at the working tree"):
        locate(REPORT, made.folder, None)


def test_submodules_that_are_not_searched_are_named(project: Made, tmp_path: Path) -> None:
    part = tmp_path / "part"
    project.git("clone", "-q", str(project.folder), str(part))
    project.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "libs/part"
    )
    project.git("commit", "-qm", "A part")

    for rev in ("HEAD", None):
        assert "libs/part" in " ".join(locate(REPORT, project.folder, rev).notes)
