"""Many logs into Parquet: each exactly once, from every kind of source, whatever ends in between."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from epochzero import diagnose
from epochzero.errors import InputError
from epochzero.logs import scan
from epochzero.logs import source as log_source
from epochzero.scale import Diagnosed, bulk, diagnose_all, read_rows, sources
from epochzero.scale.engines import LocalEngine, WorkerLostError
from epochzero.study import read_diagnoses

KEY = (
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr'\n"
)
MEMORY = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
FIRST = "[rank1]: 2024-05-01 10:00:00 ValueError: bad sample\n"
THEN = "[rank0]: 2024-05-01 10:00:09 RuntimeError: NCCL communicator was aborted\n"
WELL = "epoch 1 loss 0.5\nepoch 2 loss 0.4\nTraining completed.\n"


class Inline:
    """An engine that calls in this process; a call that `lose` wants has no result."""

    workers = 2

    def __init__(self, lose: Any = lambda function, arguments: False) -> None:
        self.lose = lose
        self.called: list[tuple[Any, ...]] = []
        self._under_way: dict[int, tuple[Any, ...]] = {}
        self.most = 0

    def start(self, function: Any, *arguments: Any) -> int:
        self.called.append((function, *arguments))
        self._under_way[len(self.called)] = (function, *arguments)
        self.most = max(self.most, len(self._under_way))
        return len(self.called)

    def ended(self, handles: Any) -> list[int]:
        return [min(handles)]

    def result(self, handle: int) -> Any:
        function, *arguments = self._under_way.pop(handle)
        if self.lose(function, arguments):
            raise WorkerLostError
        return function(*arguments)

    def close(self) -> None:
        return


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> Inline:
    engine = Inline()
    monkeypatch.setattr(bulk, "opened", lambda *_, **__: engine)
    return engine


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


FILES: dict[str, str | bytes] = {
    "a.log": KEY,
    "b.out.gz": gzip.compress(MEMORY.encode()),
    "two/rank_0.log": THEN,
    "two/rank_1.log": FIRST,
    "two/facts.json": '{"exit_code": 1, "start": 100, "end": 3700, "gpus": 8}',
    "well.log": WELL,
    "weights.bin": b"\0\1",
}
EXPECTED = {"a.log": "key_not_found", "b.out.gz": "gpu_out_of_memory"}


def rows_of(out: Path) -> dict[str, dict[str, Any]]:
    rows = list(read_rows(str(out)))
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def check_rows(rows: dict[str, dict[str, Any]], front: str = "") -> None:
    assert set(rows) == {f"{front}{name}" for name in ("a.log", "b.out.gz", "two", "well.log")}
    for name, category in EXPECTED.items():
        assert rows[front + name]["category"] == category
    assert rows[front + "well.log"]["outcome"] == "no_failure"
    two = rows[front + "two"]
    assert (two["root"]["rank"], two["root"]["file"]) == (1, "rank_1.log")
    assert two["cost"]["gpu_hours"] == 8.0
    assert (two["time"], two["seconds"]) == (3700.0, 3600.0)


def test_a_folder_is_diagnosed_as_each_of_its_jobs_would_be(inline: Inline, tmp_path: Path) -> None:
    source = write(tmp_path / "logs", FILES)
    done = diagnose_all(str(source), str(tmp_path / "out"))
    assert isinstance(done, Diagnosed)
    assert (done.logs, done.outcomes) == (4, {"failed": 3, "no_failure": 1})
    rows = rows_of(tmp_path / "out")
    check_rows(rows)
    alone = diagnose(source / "two").to_dict()
    assert rows["two"]["fingerprint"] == alone["fingerprint"]
    assert [*map(dict, rows["two"]["cascade"])] == [*map(dict, alone["cascade"])]


@pytest.mark.parametrize("name", ["logs.tar", "logs.tar.gz", "logs.zip"])
def test_an_archive_is_read_as_the_folder_it_holds(
    inline: Inline, tmp_path: Path, name: str
) -> None:
    folder = write(tmp_path / "logs", FILES)
    archive = tmp_path / "in" / name
    archive.parent.mkdir()
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive, "w") as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, path.relative_to(tmp_path))
    else:
        with tarfile.open(archive, "w:gz" if name.endswith(".gz") else "w") as tar:
            tar.add(folder, "logs")
    diagnose_all(str(archive), str(tmp_path / "alone"))
    check_rows(rows_of(tmp_path / "alone"))
    diagnose_all(str(archive.parent), str(tmp_path / "inside"))
    check_rows(rows_of(tmp_path / "inside"), f"{name}/")


def test_members_that_lead_out_of_an_archive_are_left_out(inline: Inline, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name in ("../out.log", "/root.log", "good.log"):
            member = tarfile.TarInfo(name)
            member.size = len(KEY)
            tar.addfile(member, io.BytesIO(KEY.encode()))
    diagnose_all(str(tmp_path / "x.tar"), str(tmp_path / "out"))
    assert set(rows_of(tmp_path / "out")) == {"good.log"}


def table(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_with_and_without_ids(inline: Inline, tmp_path: Path) -> None:
    table(tmp_path / "in" / "x.parquet", id=["j1", None], log=[KEY, None])
    table(tmp_path / "in" / "y.parquet", log=[MEMORY.encode()])
    diagnose_all(str(tmp_path / "in"), str(tmp_path / "out"))
    rows = rows_of(tmp_path / "out")
    assert rows["j1"]["category"] == "key_not_found"
    assert rows["y.parquet/1"]["category"] == "gpu_out_of_memory"
    assert rows["x.parquet/2"]["error"] == "its column `log` does not contain text"
    assert rows["x.parquet/2"]["outcome"] == "not_diagnosed"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no such file"),
        ({"x.bin": b"1"}, "contains no logs"),
        ({"x.tar.gz": b"no archive"}, "cannot be extracted"),
        ({"x.parquet": b"no table"}, "is not a readable Parquet file"),
    ],
)
def test_a_source_that_cannot_be_used_is_told_before_anything_is_written(
    inline: Inline, tmp_path: Path, files: dict[str, str | bytes], says: str
) -> None:
    write(tmp_path / "in", files)
    with pytest.raises(InputError, match=says):
        diagnose_all(str(tmp_path / "in"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_table_without_logs_is_told(inline: Inline, tmp_path: Path) -> None:
    table(tmp_path / "x.parquet", text=["x"])
    with pytest.raises(InputError, match="no column named `log`"):
        diagnose_all(str(tmp_path / "x.parquet"), str(tmp_path / "out"))


def test_a_result_of_something_else_is_kept(inline: Inline, tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.log": KEY})
    write(tmp_path / "mine", {"notes.txt": "mine"})
    with pytest.raises(InputError, match="is not empty"):
        diagnose_all(str(source), str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
    diagnose_all(str(source), str(tmp_path / "out"))
    with pytest.raises(InputError, match=r"another run \(redact True, now False"):
        diagnose_all(str(source), str(tmp_path / "out"), redact=False)
    check = rows_of(tmp_path / "out")
    assert set(check) == {"a.log"}


def test_a_result_is_not_written_into_its_source(inline: Inline, tmp_path: Path) -> None:
    write(tmp_path, {"a.log": KEY})
    with pytest.raises(InputError, match="is inside SOURCE"):
        diagnose_all(str(tmp_path), str(tmp_path / "out"))


def many(folder: Path, count: int) -> Path:
    return write(folder, {f"{number:04}.log": KEY for number in range(count)})


def test_the_same_command_goes_on_where_it_was_ended(
    inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LOGS_PER_PART", 2)
    source = many(tmp_path / "in", 7)
    told: list[int] = []
    first = diagnose_all(str(source), str(tmp_path / "out"), on_progress=told.append)
    assert first.parts > 2
    assert told[-1] == 7
    assert inline.most == inline.workers, "no more is begun than there are workers"
    (part, *_) = sorted((tmp_path / "out").glob("part-*"))
    part.unlink()
    (tmp_path / "out" / ".part-x.parquet.1.new").write_bytes(b"half")
    calls = len(inline.called)
    again = diagnose_all(str(source), str(tmp_path / "out"))
    assert len(inline.called) == calls + 1
    assert (again.logs, again.parts, again.parts_before) == (7, first.parts, first.parts - 1)
    assert len(rows_of(tmp_path / "out")) == 7
    assert not list((tmp_path / "out").glob(".*"))


def test_a_new_log_changes_few_parts(
    inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LOGS_PER_PART", 4)
    source = many(tmp_path / "in", 100)
    first = diagnose_all(str(source), str(tmp_path / "out"))
    write(source, {"0000a.log": WELL})
    again = diagnose_all(str(source), str(tmp_path / "out"))
    assert again.logs == 101
    assert again.outcomes["no_failure"] == 1
    assert again.parts_before >= first.parts - 3
    assert first.parts > 15


def test_a_log_that_changed_is_diagnosed_anew(inline: Inline, tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.log": KEY, "b.log": KEY})
    diagnose_all(str(source), str(tmp_path / "out"))
    (source / "b.log").write_text(MEMORY)
    os.utime(source / "b.log", (1, 1))
    write(source, {"c.log": WELL})
    done = diagnose_all(str(source), str(tmp_path / "out"))
    assert (done.logs, done.parts) == (3, 1)
    assert rows_of(tmp_path / "out")["b.log"]["category"] == "gpu_out_of_memory"


def test_a_log_that_ends_its_worker_has_a_row_that_says_so(inline: Inline, tmp_path: Path) -> None:
    def lose(function: Any, arguments: list[Any]) -> bool:
        what = arguments[1]
        return any(job.id == "0002.log" for job in getattr(what, "jobs", (what,)))

    inline.lose = lose
    diagnose_all(str(many(tmp_path / "in", 5)), str(tmp_path / "out"))
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 5
    assert [name for name, row in rows.items() if row["error"]] == ["0002.log"]
    assert "terminated the worker twice" in rows["0002.log"]["error"]


def test_logs_of_a_large_job_are_read_apart_and_set_beside_each_other(
    inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BYTES_PER_PART", 10)
    source = write(tmp_path / "in", FILES)
    diagnose_all(str(source), str(tmp_path / "out"))
    assert sum(call[0].__name__ == "read_piece" for call in inline.called) == 2
    check_rows(rows_of(tmp_path / "out"))


def large_log() -> str:
    """Ranks in one log: the first cause on rank 1, far from what it did to rank 0."""
    trains = "".join(f"[rank0]: step {n} loss 0.5\n" for n in range(900))
    waits = "".join(f"[rank0]: alive {n}\n" for n in range(2000))
    return "".join((trains, FIRST, waits, THEN, waits))


@pytest.mark.parametrize("packed", [False, True])
def test_parts_of_one_large_log_are_read_apart_and_joined(
    inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(sources, "BYTES_PER_PART", 20_000)
    monkeypatch.setattr(log_source, "BLOCK_BYTES", 1000)
    text = large_log().encode()
    name = "all.log.gz" if packed else "all.log"
    content = gzip.compress(text, 0) if packed else text
    source = write(tmp_path / "in", {name: content, f"two/{name}": content, "two/rank_5.log": THEN})
    diagnose_all(str(source), str(tmp_path / "out"))
    pieces = sum(call[0].__name__ == "read_piece" for call in inline.called)
    assert pieces == 2 if packed else pieces > 8
    rows = rows_of(tmp_path / "out")
    monkeypatch.chdir(source)
    for job in (name, "two"):
        whole = json.loads(json.dumps(diagnose(job).to_dict()))
        assert {key: rows[job][key] for key in whole} == whole
    assert rows[name]["root"]["rank"] == 1


def test_a_large_log_that_cannot_be_joined_is_read_in_one_go(
    inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BYTES_PER_PART", 20_000)
    monkeypatch.setattr(log_source, "BLOCK_BYTES", 1000)
    source = write(tmp_path / "in", {"all.log": large_log()})
    diagnose_all(str(source), str(tmp_path / "joined"))
    monkeypatch.setattr(scan, "KEPT_BYTES", 100)
    diagnose_all(str(source), str(tmp_path / "whole"))
    (joined,), (whole,) = (rows_of(tmp_path / name).values() for name in ("joined", "whole"))
    assert joined["root"] == whole["root"]


def test_one_odd_log_does_not_end_the_others(inline: Inline, tmp_path: Path) -> None:
    facts = json.dumps({"exit_code": 1, "gpus": 10**30, "start": 0, "end": 3600})
    source = write(
        tmp_path / "in",
        {"a.log": KEY, "b.log": bytes(range(32)) * 100, "c/x.log": KEY, "c/facts.json": facts,
         "d/x.log": KEY, "d/facts.json": "[]", "e/sacct.txt": ""},
    )  # fmt: skip
    diagnose_all(str(source), str(tmp_path / "out"))
    rows = rows_of(tmp_path / "out")
    assert rows["a.log"]["category"] == "key_not_found"
    assert "binary" in rows["b.log"]["error"]
    assert "cannot be written" in rows["c"]["error"]
    assert (rows["d"]["error"], rows["d"]["category"]) == ("", "key_not_found")
    assert "facts.json: expected a JSON object" in rows["d"]["notes"][0]
    assert (rows["e"]["error"], rows["e"]["outcome"]) == ("", "unknown")


def test_of_a_cut_archive_what_precedes_the_end_is_diagnosed(
    inline: Inline, tmp_path: Path
) -> None:
    noise = [random.Random(n).randbytes(9000).hex() for n in range(4)]
    inside = write(tmp_path / "in", {f"{n}/x.log": f"{noise[n]}\n{KEY}" for n in range(4)})
    whole = tmp_path / "whole.tar.gz"
    with tarfile.open(whole, "w:gz") as archive:
        for n in range(4):
            archive.add(inside / str(n), str(n))
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 3 // 4])
    diagnose_all(str(cut), str(tmp_path / "out"))
    rows = rows_of(tmp_path / "out")
    assert rows["0"]["category"] == "key_not_found"
    assert "the archive is damaged" in rows["cut.tar.gz"]["error"]


def test_a_study_reads_the_result(inline: Inline, tmp_path: Path) -> None:
    source = write(tmp_path / "in", FILES | {"bad.log": bytes(range(32)) * 100})
    diagnose_all(str(source), str(tmp_path / "out"))
    corpus = read_diagnoses(str(tmp_path / "out"))
    assert (corpus.read, len(corpus.failures())) == (5, 3)
    assert corpus.left_out == {"could not be diagnosed": 1}
    assert corpus.sums("category", "gpu_hours")[rows_of(tmp_path / "out")["two"]["category"]] == 8.0
    (tmp_path / "out" / "manifest.json").unlink()
    with pytest.raises(InputError, match="its run is incomplete"):
        read_diagnoses(str(tmp_path / "out"))


def test_other_tools_read_the_result(inline: Inline, tmp_path: Path) -> None:
    """As `docs/scale.md` shows."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    diagnose_all(str(write(tmp_path / "in", FILES)), str(tmp_path / "out"))
    expected = {row["id"]: row["category"] for row in rows_of(tmp_path / "out").values()}
    parts = str(tmp_path / "out" / "part-*.parquet")
    rows = duckdb.sql(f"SELECT id, category, root.rank FROM '{parts}'").fetchall()
    assert {name: category for name, category, _ in rows} == expected
    assert {rank for name, _, rank in rows if name == "two"} == {1}
    frame = polars.scan_parquet(parts).filter(polars.col("outcome") == "failed").collect()
    assert set(frame["id"]) == {"a.log", "b.out.gz", "two"}


def test_processes_of_this_machine_survive_the_end_of_one_of_them() -> None:
    engine = LocalEngine(2)
    try:
        lost = engine.start(signal.raise_signal, signal.SIGKILL)
        well = engine.start(len, "four")
        waiting = {lost, well}
        given: list[Any] = []
        while waiting:
            for handle in engine.ended(waiting):
                waiting.discard(handle)
                try:
                    given.append(engine.result(handle))
                except WorkerLostError:
                    given.append("lost")
        assert sorted(map(str, given)) == ["4", "lost"]
        assert engine.result(engine.start(len, "again")) == 5
        failing = engine.start(diagnose, "/no/such")
        with pytest.raises(InputError):
            engine.result(failing)
    finally:
        engine.close()


def test_workers_store_and_find_what_they_compile(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("ValueError: no\n")
    home = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "epochzero", "diagnose", str(tmp_path / "a.log")]
    stored = []
    for out in ([], ["--out", tmp_path / "one"], ["--out", tmp_path / "two"]):
        subprocess.run([*command, *out], env=home, check=False, capture_output=True)
        stored.append({path.name for path in (tmp_path / "cache/epochzero/compiled").iterdir()})
    assert stored[0] < stored[1]  # The patterns of messages: one log needs few of them.
    assert stored[1] == stored[2]


def test_processes_are_forked_again_where_what_they_are_forked_from_has_ended() -> None:
    engine = LocalEngine(1)
    try:
        parent = engine.result(engine.start(os.getppid))
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(WorkerLostError):
            engine.result(engine.start(signal.raise_signal, signal.SIGKILL))
        assert engine.result(engine.start(len, "again")) == 5
    finally:
        engine.close()


DRIVER = """
import sys
from epochzero.scale import diagnose_all, sources
if __name__ == "__main__":
    sources.LOGS_PER_PART = 20
    def tell(logs):
        print(logs, flush=True)
    diagnose_all(sys.argv[1], sys.argv[2], workers=1, on_progress=tell)
"""


def test_a_driver_that_is_killed_loses_and_repeats_nothing(
    tmp_path: Path, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = many(tmp_path / "in", 200), tmp_path / "out"
    (tmp_path / "driver.py").write_text(DRIVER)
    driver = subprocess.Popen(
        [sys.executable, tmp_path / "driver.py", source, out], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    assert 0 < int(driver.stdout.readline()) < 200
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert not (out / "manifest.json").exists()
    monkeypatch.setattr(sources, "LOGS_PER_PART", 20)
    done = diagnose_all(str(source), str(out))
    assert done.logs == 200
    assert 1 <= done.parts_before < done.parts
    assert len(rows_of(out)) == 200


def test_keys_in_an_address_are_not_kept(tmp_path: Path) -> None:
    from epochzero.scale.results import ScaleRun

    run = ScaleRun("s3://key:secret@bucket/logs?region=us-east-1", "out")
    assert "secret" not in run.key
    assert replace(run, redact=False).key != run.key


@pytest.fixture
def bucket() -> Iterator[str]:
    """The address of an empty bucket of a server on this machine."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    import pyarrow.fs

    options = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    files = pyarrow.fs.S3FileSystem(
        access_key="key", secret_key="secret", scheme="http", region="us-east-1",
        endpoint_override=f"{host}:{port}", allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("logs")
    yield f"s3://key:secret@logs/{{}}?{options}"
    server.stop()


def test_objects_of_a_bucket_become_objects_of_a_bucket(
    bucket: str, inline: Inline, tmp_path: Path
) -> None:
    from epochzero.scale.storage import Storage

    there = Storage.at(bucket.format("in"))
    for name, content in FILES.items():
        there.write(name, content.encode() if isinstance(content, str) else content)
    done = diagnose_all(bucket.format("in"), bucket.format("out"))
    assert done.logs == 4
    assert "secret" not in json.dumps(done.to_dict())
    rows = {row["id"]: row for row in read_rows(bucket.format("out"))}
    check_rows(rows)
    calls = len(inline.called)
    assert diagnose_all(bucket.format("in"), bucket.format("out")).parts_before == 1
    assert len(inline.called) == calls


def test_parts_of_a_large_log_are_read_from_a_bucket(
    bucket: str, inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from epochzero.scale.storage import Storage

    monkeypatch.setattr(sources, "BYTES_PER_PART", 20_000)
    monkeypatch.setattr(log_source, "BLOCK_BYTES", 1000)
    Storage.at(bucket.format("large")).write("all.log", large_log().encode())
    write(tmp_path / "in", {"all.log": large_log()})
    diagnose_all(bucket.format("large"), bucket.format("large-out"))
    pieces = sum(call[0].__name__ == "read_piece" for call in inline.called)
    diagnose_all(str(tmp_path / "in"), str(tmp_path / "out"))
    assert pieces > 1
    assert list(read_rows(bucket.format("large-out"))) == list(read_rows(str(tmp_path / "out")))
