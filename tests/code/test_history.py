"""Who changed what, when and with what; read whole, cut off, continued and kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.code import history as module
from epochzero.code.changes import Change, Changes
from epochzero.code.history import LARGEST_COCHANGE, History, _changes, _fields
from epochzero.code.snapshot import Repository
from epochzero.errors import InputError

if TYPE_CHECKING:
    from conftest import Made

LINES = "".join(f"line {n} of a file that is moved\n" for n in range(30))


@pytest.fixture
def story(made: Made) -> Made:
    """Two files that change together, one of them moved twice; a side branch; a merge."""
    made.write("old.py", LINES)
    made.write("b.py", "1\n")
    made.commit("Start")
    made.write("old.py", LINES + "a\n")
    made.write("b.py", "2\n")
    made.commit("Fix the crash in b", GIT_AUTHOR_EMAIL="B@example.com")
    made.git("mv", "old.py", "middle.py")
    made.commit("Move")
    made.git("switch", "-q", "-c", "side")
    made.write("middle.py", LINES + "side\n")
    made.commit("On the side")
    made.git("switch", "-q", "main")
    made.write("b.py", "3\n")
    made.commit("Correct the docs: not an error of ours" + "!" * 1000 + "\n\nbody")
    made.clock += 60
    made.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    (made.folder / "pkg").mkdir()
    made.git("mv", "middle.py", "pkg/new.py")
    made.write("pkg/new.py", LINES + "side\nmoved\n")
    made.commit("Move and change")
    return made


def messages(history: History, path: str) -> list[str]:
    return [change.message[:12] for change in history.of(path)]


def test_a_file_keeps_the_changes_of_its_old_names(story: Made) -> None:
    history = History(Repository(story.folder))
    expected = ["Move and cha", "On the side", "Move", "Fix the cras", "Start"]
    assert messages(history, "pkg/new.py") == expected
    assert messages(history, "middle.py") == messages(history, "nothing.py") == []
    assert history.count("pkg/new.py") == 5
    assert history.fixes("pkg/new.py") == 1
    assert history.fixes("b.py") == 2
    assert history.last("nothing.py") is None
    last = history.last("b.py")
    assert last is not None
    assert len(last.message) == 600
    assert last.files == ("b.py",)
    assert sorted(history.authors("b.py").values()) == [1, 2]
    assert history.cochanged("b.py") == {"pkg/new.py": 2}
    assert history.cochanged("pkg/new.py") == {"b.py": 2}
    moved = history.changes[0]
    assert moved.renames == (("middle.py", "pkg/new.py"),)
    assert moved.time == story.clock
    assert "Merge" not in [change.message for change in history.changes]
    assert not history.shallow


def test_nothing_later_than_the_revision_leaks(story: Made) -> None:
    story.git("switch", "-q", "-c", "later")
    story.write("b.py", "9\n")
    story.commit("Secret of the future")
    story.git("tag", "future")
    history = History(Repository(story.folder), "main")
    assert not [change for change in history.changes if "Secret" in change.message]
    early = History(Repository(story.folder), "main~2")
    assert messages(early, "middle.py") == ["Move", "Fix the cras", "Start"]


def test_a_history_ends_before_a_time(story: Made) -> None:
    repository = Repository(story.folder)
    whole = History(repository)
    times = sorted({change.time for change in whole.changes})
    for n, time in enumerate(times):
        cut = History(repository, until=time)
        assert sorted(change.time for change in cut.changes) == times[:n]
        assert History.from_bytes(cut.to_bytes()).changes == whole.changes
        assert History.from_bytes(whole.to_bytes(), until=time).changes == cut.changes


def test_a_history_is_continued_from_an_ancestor(
    story: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(story.folder)
    whole = History(repository)
    for rev in ("HEAD~1", "HEAD~2", "side", "HEAD~4", "HEAD"):
        known = History.from_bytes(History(repository, rev).to_bytes())
        continued = History(repository, known=known)
        assert continued.tip == whole.tip
        assert sorted(continued.changes) == sorted(whole.changes)
        assert messages(continued, "pkg/new.py") == messages(whole, "pkg/new.py")
    read: list[str] = []
    stream = repository.git.stream
    monkeypatch.setattr(
        repository.git, "stream", lambda *words: read.extend(words) or stream(*words)
    )
    later = History(repository, "HEAD~3", known=whole)  # not an ancestor
    assert not [word for word in read if word.startswith("^")]
    assert len(later.changes) == 4 - 1


def test_only_the_latest_changes_are_read(story: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(story.folder)
    whole = History(repository)
    assert not whole.cut
    monkeypatch.setattr(module, "MOST_CHANGES", len(whole.changes))
    assert not History(repository).cut
    monkeypatch.setattr(module, "MOST_CHANGES", 3)
    cut = History(repository)
    assert cut.cut
    assert History.from_bytes(cut.to_bytes()).cut
    assert cut.changes == whole.changes[:3]
    continued = History(repository, known=History(repository, "HEAD~2"))
    assert (continued.changes, continued.cut) == (cut.changes, True)


def test_a_history_is_read_in_parts(story: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = History(Repository(story.folder)).changes
    columns, parts = Changes.of, list[int]()

    def counted(changes: Sequence[Change]) -> Changes:
        parts.append(len(changes))
        return columns(changes)

    monkeypatch.setattr(module, "READ_AT_ONCE", 2)
    monkeypatch.setattr(Changes, "of", counted)
    assert History(Repository(story.folder)).changes == whole
    assert parts == [0, 2, 2, 2], "never more than two at once"


def test_large_commits_say_nothing_of_what_belongs_together(made: Made) -> None:
    for n in range(LARGEST_COCHANGE + 1):
        made.write(f"f{n}.py")
    made.commit("Everything")
    made.write("f0.py", "1")
    made.write("f1.py", "1")
    made.commit("Two")
    history = History(Repository(made.folder))
    assert history.cochanged("f0.py") == {"f1.py": 1}
    assert history.count("f0.py") == 2


def test_a_shallow_history_says_so_and_does_not_blame_its_first_commit(
    story: Made, tmp_path: Path
) -> None:
    story.git("clone", "-q", "--depth=2", f"file://{story.folder}", str(tmp_path / "shallow"))
    history = History(Repository(tmp_path / "shallow"))
    assert history.shallow
    assert messages(history, "pkg/new.py")[0] == "Move and cha"
    assert "Start" not in [change.message for change in history.changes]
    assert all(len(change.files) <= 1 for change in history.changes)
    assert History.from_bytes(history.to_bytes()).shallow


def test_odd_paths_and_messages_survive(made: Made) -> None:
    names = [b"new\nline.py", b"latin-\xe4.py", "täb\t.py".encode(), b"M", b"R100", b"-x", b" y "]
    for name in names:
        made.write(name, name * 20)
    made.commit("Ümlaut\n\nbody with \x01 and ä")
    made.git("mv", "--", "-x", "R0")
    made.git("mv", "M", "A")
    made.commit("Moves")
    made.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    made.git("-c", "i18n.commitEncoding=latin-1", "commit", "-q", "--allow-empty", "-m",
             b"latin \xe4")  # fmt: skip
    history = History(Repository(made.folder))
    latin, empty, moves, first = history.changes
    assert (latin.message, latin.files) == ("latin ä", ())
    assert (empty.message, empty.files) == ("", ())
    assert dict(moves.renames) == {"-x": "R0", "M": "A"}
    assert {os.fsencode(path) for path in first.files} == set(names)
    assert first.message.startswith("Ümlaut")
    assert history.count("A") == 2
    assert History.from_bytes(history.to_bytes()).changes == history.changes


@pytest.mark.parametrize(
    ("message", "is_fix"),
    [
        ("Fix typo", True), ("fixes #12", True), ("[bugfix] x", True), ("hot-fix", True),
        ("Handle errors in loader", True), ("Crashes on CPU", True), ("resolve #3", True),
        ("failing test", True), ("Incorrect shape", True), ("Add prefix option", False),
        ("New debug flag", False), ("Refactor", False), ("x" * 199 + " fix", False),
        ("Update fixture", False),
    ],
)  # fmt: skip
def test_fixes_are_known_by_their_words(made: Made, message: str, is_fix: bool) -> None:
    made.commit(message)
    assert History(Repository(made.folder)).changes[0].is_fix is is_fix


def test_a_missing_object_costs_renames_not_the_history(story: Made) -> None:
    blob = story.git("rev-parse", "HEAD:pkg/new.py")
    place = story.folder / ".git" / "objects" / blob[:2] / blob[2:]
    place.chmod(0o600)
    place.unlink()
    history = History(Repository(story.folder))
    assert messages(history, "middle.py")[0] == "Move and cha"
    assert messages(history, "b.py")[-1] == "Start"


def test_unknown_revisions_are_said(story: Made) -> None:
    with pytest.raises(InputError, match="unknown revision"):
        History(Repository(story.folder), "nowhere")


@pytest.mark.parametrize("data", [b"", b"x", b"(\xb5/\xfd$\x02\x11\x00\x00[]"])
def test_damaged_histories_are_said(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"histor|unpack|Expecting|enough"):
        History.from_bytes(data)


@given(st.lists(st.binary(max_size=60)), st.integers(1, 9))
def test_any_stream_is_read_to_its_end(fields: list[bytes], size: int) -> None:
    stream = b"\0".join(fields)
    chunks = [stream[n : n + size] for n in range(0, len(stream), size)]
    assert b"\0".join(_fields(chunks)).rstrip(b"\0") == stream.rstrip(b"\0")
    list(_changes(_fields(chunks)))
