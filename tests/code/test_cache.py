"""The cache: what it keeps, what it survives; parsing a snapshot with and without it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochzero.code import cache as module
from epochzero.code import workers
from epochzero.code.cache import Cache, Key, parse_snapshot
from epochzero.code.parse import parse
from epochzero.code.parsed import Parsed
from epochzero.code.snapshot import LARGEST_BYTES, File, Repository, Snapshot
from epochzero.errors import InputError
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conftest import Made

CODE = b"def loss(x):\n    return x.mean('over all of the batch')\n"
DATA = parse(CODE, "a.py").to_bytes()


def keys(count: int, tag: str = "") -> list[Key]:
    return [Key(f"{tag}{n:040d}", "python") for n in range(count)]


def test_what_is_stored_is_found_again(tmp_path: Path) -> None:
    wanted = keys(1200)
    cache = Cache(tmp_path / "deep" / "folder")
    assert cache.load_many(wanted) == {}
    cache.store_many(dict.fromkeys(wanted, DATA))
    for again in (cache, Cache(tmp_path / "deep" / "folder")):
        found = again.load_many([*wanted, Key("other", "python"), Key(wanted[0].blob, "java")])
        assert set(found) == set(wanted)
        assert all(parsed.to_bytes() == DATA for parsed in found.values())
        assert not again.problem
        assert again.set_aside is None
    cache.close()
    assert len(cache.load_many(wanted)) == 1200


def test_another_version_of_the_parser_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.store_many(dict.fromkeys(keys(3), DATA))
    monkeypatch.setattr(module, "PARSER_VERSION", 10_000)
    assert cache.load_many(keys(3)) == {}


def test_the_cache_is_bounded_and_forgets_what_is_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000_000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    cache = Cache(tmp_path, limit_bytes=100 * len(DATA))
    batches = [keys(30, tag) for tag in "abcd"]
    for batch in batches[:3]:
        cache.store_many(dict.fromkeys(batch, DATA))
        now[0] += 10 * module.USED_EVERY_S
    assert len(cache.load_many(batches[0])) == 30  # used again
    cache.store_many(dict.fromkeys(batches[3], DATA))
    assert [len(cache.load_many(batch)) for batch in batches] == [30, 0, 20, 30]
    for n in range(60):
        cache.store_many(dict.fromkeys(keys(30, f"x{n}"), DATA))
    cache.close()
    assert cache.path.stat().st_size < 5 * 100 * len(DATA)


@pytest.mark.parametrize(
    "content", [b"no database at all" * 500, b"SQLite format 3\0" + bytes(5000)]
)
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / module.FILE_NAME).write_bytes(content)
    cache = Cache(tmp_path)
    cache.store_many(dict.fromkeys(keys(3), DATA))
    assert len(cache.load_many(keys(3))) == 3
    assert cache.set_aside is not None
    assert cache.set_aside.read_bytes() == content
    assert not cache.problem


def test_a_file_damaged_in_the_middle_is_no_trouble(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store_many(dict.fromkeys(keys(500), DATA))
    cache.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{cache.path}{suffix}").unlink(missing_ok=True)
    whole = cache.path.read_bytes()
    for place in range(4096, len(whole), 1 << 14):
        broken = bytearray(whole)
        broken[place : place + 2000] = os.urandom(2000)
        cache.path.write_bytes(broken)
        damaged = Cache(tmp_path)
        found = damaged.load_many(keys(500))
        assert all(parsed.to_bytes() == DATA for parsed in found.values())
        damaged.store_many(dict.fromkeys(keys(500), DATA))
        damaged.close()


def test_the_database_of_another_program_is_set_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / module.FILE_NAME) as other:
        other.execute("CREATE TABLE parsed (mine)")
    other.close()
    cache = Cache(tmp_path)
    cache.store_many(dict.fromkeys(keys(1), DATA))
    assert cache.set_aside is not None
    assert len(cache.load_many(keys(1))) == 1


def test_without_a_place_to_write_the_work_goes_on(tmp_path: Path, made: Made) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "folder")
    assert "file" in cache.problem
    cache.store_many(dict.fromkeys(keys(1), DATA))
    assert cache.load_many(keys(1)) == {}
    snapshot = filled(made, 2)
    assert len(parse_snapshot(snapshot, snapshot.files, cache)) == 2


def test_a_cache_that_can_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cache(tmp_path).store_many(dict.fromkeys(keys(3), DATA))
    cache = Cache(tmp_path)
    assert cache._database is not None
    cache._database.execute("PRAGMA query_only = 1")
    monkeypatch.setattr(module, "USED_EVERY_S", -10)
    assert len(cache.load_many(keys(3))) == 3
    assert not cache.problem
    cache.store_many(dict.fromkeys(keys(1, "new"), DATA))
    assert "readonly" in cache.problem
    assert len(cache.load_many(keys(3))) == 3


def test_a_locked_cache_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.1)
    cache = Cache(tmp_path)
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache.store_many(dict.fromkeys(keys(1), DATA))
    assert "locked" in cache.problem
    other.execute("ROLLBACK")
    other.close()
    cache.store_many(dict.fromkeys(keys(1), DATA))
    assert len(cache.load_many(keys(1))) == 1


def test_a_damaged_entry_is_as_good_as_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store_many({keys(2)[0]: DATA, keys(2)[1]: DATA[:-1] + b"\xff"})
    assert list(cache.load_many(keys(2))) == keys(2)[:1]


BUSY = """
from epochzero.code.cache import Cache, Key
from epochzero.code.parse import parse
import sys
data = parse(b"def f(): pass", "a.py").to_bytes()
for n in range(60):
    cache = Cache(sys.argv[1], limit_bytes=200 * len(data))
    wanted = [Key(str(m), "python") for m in range(n, n + 40)]
    cache.store_many(dict.fromkeys(wanted, data))
    cache.load_many(wanted)
    # On a machine at its limit the other's lock may be waited for in vain; then it is left at that.
    assert "locked" in cache.problem or not cache.problem, cache.problem
    assert cache.set_aside is None
    cache.close()
"""


def test_processes_share_a_cache(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", BUSY, str(tmp_path)], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [child.communicate()[1].decode() for child in both]
    assert [child.returncode for child in both] == [0, 0], said
    everything = [Key(str(number), "python") for number in range(100)]
    assert Cache(tmp_path).load_many(everything)


def test_a_cache_that_is_created_at_the_same_moment_is_no_foreign_file(tmp_path: Path) -> None:
    together = threading.Barrier(3)
    aside: list[Path] = []

    def create() -> None:
        for number in range(60):
            together.wait()
            cache = Cache(tmp_path / str(number))
            aside.extend([cache.set_aside] if cache.set_aside else [])
            cache.close()

    threads = [threading.Thread(target=create) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert aside == []


# -- Snapshots ---------------------------------------------------------------------------------


def filled(made: Made, count: int) -> Snapshot:
    for n in range(count):
        made.write(f"pkg/f{n}.py", CODE + b"# %d\n" % n * 40)
    made.commit()
    return Repository(made.folder).snapshot()


class Counting:
    """A snapshot that counts what is read."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.paths: list[str] = []

    def read(self, files: Iterable[File]) -> Iterator[tuple[File, bytes]]:
        for file, data in self._snapshot.read(files):
            self.paths.append(file.path)
            yield file, data


def parsed_all(snapshot: Snapshot) -> list[bytes]:
    return [parse(data, file.path).to_bytes() for file, data in snapshot.read(snapshot.files)]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start for however little."""
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr(workers, "CHUNK_FILES", 3)


def test_only_what_changed_is_read(made: Made, tmp_path: Path) -> None:
    snapshot = filled(made, 12)
    cache = Cache(tmp_path / "cache")
    first = parse_snapshot(snapshot, snapshot.files, cache)
    assert [parsed.to_bytes() for parsed in first] == parsed_all(snapshot)
    made.write("pkg/f3.py", CODE)
    made.write("same.py", CODE)
    made.commit()
    later = Repository(made.folder).snapshot()
    counting = Counting(later)
    told: list[tuple[int, int]] = []
    second = parse_snapshot(
        counting, later.files, cache, on_progress=lambda done, total: told.append((done, total))
    )  # type: ignore[arg-type]
    assert counting.paths == ["same.py"]  # of the same content, and therefore only one of them
    assert [parsed.to_bytes() for parsed in second] == parsed_all(later)
    assert told == [(11, 12), (12, 12)]
    tree = Repository(made.folder).working_tree()
    counting = Counting(tree)
    parse_snapshot(counting, tree.files, cache)  # type: ignore[arg-type]
    assert counting.paths == []


def test_files_that_are_no_text_are_not_read(made: Made) -> None:
    made.write("large.py", b"x" * (LARGEST_BYTES + 1))
    made.write("picture.png", b"\x89PNG")
    made.write("a.py", CODE)
    made.commit()
    snapshot = Repository(made.folder).snapshot()
    counting = Counting(snapshot)
    found = parse_snapshot(counting, snapshot.files)  # type: ignore[arg-type]
    assert counting.paths == ["a.py"]
    assert [len(parsed.bags["whole"]) > 0 for parsed in found] == [True, False, False]


@pytest.mark.usefixtures("eager")
def test_workers_find_the_same(made: Made, tmp_path: Path) -> None:
    snapshot = filled(made, 20)
    cache = Cache(tmp_path / "cache")
    threads = threading.active_count()
    found = parse_snapshot(snapshot, snapshot.files, cache, workers=2)
    assert [parsed.to_bytes() for parsed in found] == parsed_all(snapshot)
    assert len(cache.load_many([Key.of(file) for file in snapshot.files])) == 20
    _settle(threads)


def _settle(threads: int) -> None:
    """Waits until the threads that drove workers have ended them."""
    wait_until(lambda: threading.active_count() <= threads)


def test_chunks_larger_than_a_pipe_are_no_trouble() -> None:
    code = b"".join(b"def f%d(): return g%d('a b c d')\n" % (n, n) for n in range(1500))
    jobs = [(n, "a.py", code) for n in range(12)]
    assert sorted(dict(workers.parse_all(jobs, 2))) == list(range(12))


KILLER = """
import os, signal, sys
import epochzero.code.workers as workers
parse = workers.parse
def deadly(data, path):
    if b"deadly" in data or (b"once" in data and not os.path.exists(sys.path[0])):
        open(sys.path[0], "w").close() if b"once" in data else None
        os.kill(os.getpid(), signal.SIGKILL)
    return parse(data, path)
workers.parse = deadly
workers.serve()
"""


def test_a_worker_that_dies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> subprocess.Popen[bytes]:
        code = f"import sys; sys.path[:] = {[str(tmp_path / 'flag'), *sys.path]!r}\n{KILLER}"
        return subprocess.Popen(
            [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    monkeypatch.setattr(workers, "_start", start)
    monkeypatch.setattr(workers, "CHUNK_FILES", 4)
    jobs = [(n, "a.py", CODE + b"# %d" % n) for n in range(10)]
    jobs[2] = (2, "a.py", CODE + b"# deadly")
    jobs[7] = (7, "a.py", CODE + b"# once")
    found = {n: Parsed.from_bytes(data) for n, data in workers.parse_all(jobs, 2)}
    assert sorted(found) == list(range(10))
    assert [n for n, parsed in found.items() if parsed.language == "text"] == [2]
    assert found[2].bags["whole"].total > 0


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/true"])
def test_workers_that_cannot_start_are_done_without(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    jobs = [(n, "a.py", CODE) for n in range(5)]
    found = dict(workers.parse_all(jobs, 2))
    assert [Parsed.from_bytes(found[n]).language for n in range(5)] == ["python"] * 5


@pytest.mark.usefixtures("eager")
def test_an_error_while_reading_reaches_the_caller(made: Made) -> None:
    filled(made, 9)
    tree = Repository(made.folder).working_tree()
    made.write("pkg/f5.py", "changed")
    threads = threading.active_count()
    with pytest.raises(InputError, match="changed while"):
        parse_snapshot(tree, tree.files, workers=2)
    _settle(threads)


@pytest.mark.usefixtures("eager")
def test_workers_take_no_module_from_the_current_folder(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = filled(made, 4)
    for name in ("json", "numpy", "epochzero", "struct", "tree_sitter"):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit"
        )
    monkeypatch.chdir(tmp_path)
    found = parse_snapshot(snapshot, snapshot.files, workers=2)
    assert [parsed.language for parsed in found] == ["python"] * 4
    assert not (tmp_path / "ran").exists()
