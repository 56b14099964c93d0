"""Histories kept between runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochzero.code import History, Repository
from epochzero.locate import histories
from epochzero.locate.histories import read_history

if TYPE_CHECKING:
    from conftest import Made


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "history").iterdir())


def test_what_was_kept_is_continued(project: Made, tmp_path: Path) -> None:
    repository, cache = Repository(project.folder), tmp_path / "cache"
    first = read_history(repository, "HEAD", cache)
    assert first.changes == History(repository).changes
    project.write("src/new.py")
    project.commit("Fix more")
    second = read_history(repository, "HEAD", cache)
    assert second.changes == History(repository).changes
    assert len(kept(cache)) == 1


def test_a_branch_that_goes_back(project: Made, tmp_path: Path) -> None:
    repository = Repository(project.folder)
    read_history(repository, "HEAD", tmp_path)
    earlier = read_history(repository, "HEAD~1", tmp_path)
    assert earlier.changes == History(repository, "HEAD~1").changes


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\x28\xb5\x2f\xfd\x00"])
def test_damage_costs_nothing_but_time(project: Made, tmp_path: Path, damage: bytes) -> None:
    repository = Repository(project.folder)
    read_history(repository, "HEAD", tmp_path)
    (path,) = kept(tmp_path)
    path.write_bytes(damage)
    assert read_history(repository, "HEAD", tmp_path).changes == History(repository).changes
    assert History.from_bytes(path.read_bytes()).changes == History(repository).changes


def test_without_a_place_to_keep_it(project: Made, tmp_path: Path) -> None:
    repository = Repository(project.folder)
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert len(read_history(repository, "HEAD", blocked).changes) == 3
    assert len(read_history(repository, "HEAD", None).changes) == 3


def test_only_so_many_are_kept(
    project: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "MOST_HISTORIES", 1)
    folder = tmp_path / "history"
    folder.mkdir()
    for number in range(3):
        (folder / f"old{number}.zst").write_bytes(b"")
    read_history(Repository(project.folder), "HEAD", tmp_path)
    (left,) = kept(tmp_path)
    assert not left.name.startswith("old")
