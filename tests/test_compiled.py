"""Stored items are found by their content, and nothing that others can write is trusted."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from epochzero import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = compiled.key_of([b"what it is made of"])
ITEM = b"what is made" * 1000


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "cache" / "compiled"
    before = compiled._directory
    compiled.use(place)
    yield place
    compiled.use(before)


def test_what_is_stored_is_loaded(directory: Path) -> None:
    assert compiled.load(KEY) is None
    compiled.store(KEY, ITEM)
    assert compiled.load(KEY) == ITEM
    assert directory.stat().st_mode & 0o077 == 0
    assert (directory / KEY).stat().st_mode & 0o077 == 0


def test_without_a_directory_nothing_is_stored(directory: Path) -> None:
    compiled.use(None)
    compiled.store(KEY, ITEM)
    assert compiled.load(KEY) is None
    assert not directory.exists()


def test_keys_tell_sequences_of_parts_apart() -> None:
    parts = [[b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"abc", b""], [b"c", b"ab"], [b"2:ab1:c"], []]
    assert len({compiled.key_of(some) for some in parts}) == len(parts)


@pytest.mark.parametrize("damaged", [b"", b"short", ITEM, b"\0" * 2000])
def test_a_damaged_item_is_none_and_is_replaced(directory: Path, damaged: bytes) -> None:
    compiled.store(KEY, ITEM)
    (directory / KEY).write_bytes(damaged)
    assert compiled.load(KEY) is None
    compiled.store(KEY, ITEM)
    assert compiled.load(KEY) == ITEM


@pytest.mark.parametrize("at", [0, 31, 32, 5000, -1])
def test_a_changed_byte_is_noticed(directory: Path, at: int) -> None:
    compiled.store(KEY, ITEM)
    data = bytearray((directory / KEY).read_bytes())
    data[at] ^= 1
    (directory / KEY).write_bytes(data)
    assert compiled.load(KEY) is None


def test_a_truncated_item_is_none(directory: Path) -> None:
    compiled.store(KEY, ITEM)
    os.truncate(directory / KEY, 4000)
    assert compiled.load(KEY) is None


def test_an_item_is_of_its_own_key_only(directory: Path) -> None:
    other = compiled.key_of([b"something else"])
    compiled.store(KEY, ITEM)
    (directory / KEY).rename(directory / other)
    assert compiled.load(other) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_item_that_others_can_write_is_not_trusted(directory: Path, mode: int) -> None:
    compiled.store(KEY, ITEM)
    (directory / KEY).chmod(mode)
    assert compiled.load(KEY) is None


@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_a_directory_that_others_can_write_is_not_used(directory: Path, mode: int) -> None:
    compiled.store(KEY, ITEM)
    directory.chmod(mode)
    assert compiled.load(KEY) is None
    compiled.store(compiled.key_of([b"new"]), ITEM)
    assert len(list(directory.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_belongs_to_others_is_not_trusted(directory: Path, what: str) -> None:
    compiled.store(KEY, ITEM)
    os.chown(directory / KEY if what == "file" else directory, 65534, 65534)
    assert compiled.load(KEY) is None


def test_links_are_not_followed(directory: Path, tmp_path: Path) -> None:
    compiled.store(KEY, ITEM)
    (directory / KEY).rename(tmp_path / "item")
    (directory / KEY).symlink_to(tmp_path / "item")
    assert compiled.load(KEY) is None
    (directory / KEY).unlink()
    (tmp_path / "item").rename(directory / KEY)
    assert compiled.load(KEY) == ITEM
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    assert compiled.load(KEY) is None


def test_a_named_pipe_or_a_directory_is_no_item(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True)
    os.mkfifo(directory / KEY)
    assert compiled.load(KEY) is None
    (directory / KEY).unlink()
    (directory / KEY).mkdir()
    assert compiled.load(KEY) is None
    compiled.store(KEY, ITEM)
    assert [path.name for path in directory.iterdir()] == [KEY]


@pytest.mark.parametrize("place", ["file/compiled", "/proc/no/such"])
def test_where_nothing_can_be_written_nothing_is_stored(
    directory: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    compiled.use(tmp_path / place)
    compiled.store(KEY, ITEM)
    assert compiled.load(KEY) is None


def test_many_at_once_see_whole_items_only(directory: Path) -> None:
    seen: set[bytes | None] = set()

    def start() -> None:
        for _ in range(50):
            seen.add(compiled.load(KEY))
            compiled.store(KEY, ITEM)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= {None, ITEM}
    assert compiled.load(KEY) == ITEM
    assert [path.name for path in directory.iterdir()] == [KEY]


def test_old_items_are_removed(directory: Path) -> None:
    keys = [compiled.key_of([b"%d" % n]) for n in range(compiled.MOST_ITEMS + 3)]
    for age, key in enumerate(keys):
        compiled.store(key, ITEM)
        os.utime(directory / key, (age, age))
    compiled.store(KEY, ITEM)
    assert len(list(directory.iterdir())) == compiled.MOST_ITEMS
    assert compiled.load(keys[0]) is None
    assert compiled.load(keys[-1]) == compiled.load(KEY) == ITEM
