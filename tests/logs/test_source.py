"""Where logs come from: files, folders of rank files, compressed and damaged files, pipes."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero import zstd
from epochzero.errors import InputError
from epochzero.logs import source
from epochzero.logs.source import HEAD_BYTES, STDIN, Log, find_logs, looks_binary, rank_of

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = b"".join(b"step %d loss %d\n" % (n, n * n % 97) for n in range(20_000))


def content(log: Log) -> bytes:
    """All of a log; its blocks must follow one another without a gap."""
    whole = b""
    for block in log.blocks():
        assert block.offset == len(whole)
        assert block.data
        whole += block.data
    return whole


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"text\n")


# -- Compression -------------------------------------------------------------------------------

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda text: gzip.compress(text),
    "zst": lambda text: zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: 1}),
}


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("name", ["train.log.{}", "train.log"])
def test_compressed_files_are_known_by_their_content(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name.format(kind)
    path.write_bytes(PACKERS[kind](TEXT))
    (log,) = find_logs([path])
    assert content(log) == TEXT


@pytest.mark.parametrize("kind", PACKERS)
def test_several_compressed_parts_in_one_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(PACKERS[kind](TEXT) + PACKERS[kind](TEXT))
    assert content(Log("train.log", path)) == TEXT + TEXT


@pytest.mark.parametrize(
    ("kind", "damage", "kept"),
    [
        ("gz", lambda packed: packed[: len(packed) // 2], 0.3),
        ("gz", lambda packed: packed[:-9], 0.99),
        ("gz", lambda packed: packed[:-8] + b"\0" * 8, 1.0),
        ("gz", lambda packed: packed + b"no gzip", 1.0),
        ("zst", lambda packed: packed[: len(packed) // 2], 0.2),
        ("zst", lambda packed: packed[:-4], 0.5),
    ],
)
def test_a_damaged_end_costs_no_more_than_itself(
    tmp_path: Path, kind: str, damage: Callable[[bytes], bytes], kept: float
) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(damage(PACKERS[kind](TEXT)))
    found = content(Log("train.log", path))
    assert TEXT.startswith(found)
    assert len(found) >= kept * len(TEXT)


def test_a_small_log_that_was_still_being_compressed(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(b"epoch 1\nRuntimeError: boom\n")[:-8])
    assert content(Log("train.log.gz", path)) == b"epoch 1\nRuntimeError: boom\n"


MEMBER = b"KeyError: 'lr'\n"


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda packed: packed, []),
        (lambda packed: packed[:-5], [source.CUT_OFF]),
        (lambda packed: packed[: len(packed) // 2], [source.CUT_OFF]),
        (lambda packed: packed + b"junk", [source.DAMAGED]),
        (lambda packed: packed + b"\0" * 512, []),
        (lambda packed: _flipped(packed, len(packed) // 2), [source.DAMAGED]),
    ],
)
def test_damage_is_reported(
    tmp_path: Path, kind: str, damage: Callable[[bytes], bytes], told: list[str]
) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(damage(PACKERS[kind](random.Random(7).randbytes(9000).hex().encode())))
    reported: list[str] = []
    list(Log("train.log", path).blocks(reported.append))
    assert reported == told


def _flipped(packed: bytes, at: int) -> bytes:
    return packed[:at] + bytes(byte ^ 0xFF for byte in packed[at : at + 8]) + packed[at + 8 :]


@pytest.mark.parametrize("kind", PACKERS)
def test_members_behind_a_damaged_one_are_read(tmp_path: Path, kind: str) -> None:
    whole = PACKERS[kind](random.Random(7).randbytes(400_000).hex().encode())
    path = tmp_path / "train.log"
    path.write_bytes(_flipped(whole, len(whole) // 2) + PACKERS[kind](MEMBER))
    lines = content(Log("train.log", path)).split(b"\n")
    assert lines[-2:] == [MEMBER.rstrip(), b""]


@given(data=st.binary(max_size=300), cut=st.integers(0, 300), flip=st.integers(0, 300))
@pytest.mark.parametrize("kind", PACKERS)
def test_any_damage_yields_blocks(kind: str, data: bytes, cut: int, flip: int) -> None:
    packed = bytearray(PACKERS[kind](data) * 2)
    if flip < len(packed):
        packed[flip] ^= 0x40
    stream = io.BufferedReader(io.BytesIO(bytes(packed[: len(packed) - cut])))
    plain = source._plain(stream, source.ignore_damage)
    assert len(b"".join(block.data for block in source.blocks_of(plain))) <= 1 << 20


# -- Encodings and holes -------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [lambda data: data, *PACKERS.values()])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
    ],
)
def test_utf_16_is_read_line_by_line(
    tmp_path: Path, mark: bytes, encoding: str, packed: Callable[[bytes], bytes]
) -> None:
    text = "".join(f"step {n} loss {n * n} ✓\r\n" for n in range(9_000))
    path = tmp_path / "train.log"
    path.write_bytes(packed(mark + text.encode(encoding)))
    assert content(Log("train.log", path)).decode() == text
    assert source.is_encoded(path.read_bytes()[:4096])


def test_utf_16_without_latin_letters_needs_a_mark(tmp_path: Path) -> None:
    text = "训练开始\n" * 100
    path = tmp_path / "train.log"
    path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    assert content(Log("train.log", path)).decode() == text
    path.write_bytes(text.encode("utf-16-le"))
    assert content(Log("train.log", path)) == text.encode("utf-16-le")


@pytest.mark.parametrize(
    "head",
    [
        b"\xff\xfe" + random.Random(1).randbytes(4000),
        struct.pack("<2000h", *(n % 300 for n in range(2000))),
        struct.pack("<1000i", *range(1000)),
        bytes(range(256)) * 16,
        b"\x7fELF\x02\x01\x01" + b"\0" * 9 + bytes(n % 32 for n in range(4000)),
    ],
)
def test_binary_files_are_still_told_from_text(head: bytes) -> None:
    assert not source.is_encoded(head)
    assert looks_binary(head)


def test_random_bytes_are_binary_whichever_they_are() -> None:
    assert all(looks_binary(random.Random(seed).randbytes(HEAD_BYTES)) for seed in range(500))


@pytest.mark.parametrize("at", [0, 10, 3000])
def test_a_hole_of_nul_bytes_is_no_binary_file(at: int) -> None:
    assert not looks_binary((TEXT[:at] + b"\0" * 2000 + TEXT[at:])[:4096])


# -- Streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [TEXT, gzip.compress(TEXT), zstd.compress(TEXT), b""])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, packed: bytes) -> None:
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(packed)))
    monkeypatch.setattr("sys.stdin", stream)
    (log,) = find_logs([STDIN])
    assert log.name == "<stdin>"
    assert content(log) == (TEXT if packed else b"")


def test_a_pipe_is_read_without_rewinding(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    (log,) = find_logs([path])
    assert content(log) == TEXT
    writer.join()


@pytest.mark.parametrize("tail", [b"", b"no line end"])
@given(size=st.integers(1, 50), lines=st.lists(st.binary(max_size=20), max_size=20))
def test_blocks_are_whole_lines_of_any_log(tail: bytes, size: int, lines: list[bytes]) -> None:
    text = b"".join(line + b"\n" for line in lines) + tail
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", size)
        blocks = [block.data for block in Log("x", text=text).blocks()]
        assert content(Log("x", text=text)) == text
    assert all(data.endswith(b"\n") for data in blocks[:-1])


def test_an_overlong_line_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK_BYTES", 10)
    monkeypatch.setattr(source, "LONGEST_LINE_BYTES", 50)
    text = b"first\n" + b"x" * 1000 + b"\nlast\n"
    blocks = list(Log("x", text=text).blocks())
    assert b"".join(block.data for block in blocks) == text
    assert max(len(block.data) for block in blocks) <= 70


# -- Paths -------------------------------------------------------------------------------------


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        find_logs([Path("/no/such/train.log")])


def test_a_program_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    with pytest.raises(InputError, match=r"epochzero check -- python .*train\.py"):
        find_logs([tmp_path / "train.py"])


def test_a_folder_without_logs_says_what_was_looked_for(tmp_path: Path) -> None:
    write(tmp_path, "model.pt", "train.py", "events.out.tfevents.17000.node01")
    with pytest.raises(InputError, match=r"no log files.*\*\.log"):
        find_logs([tmp_path])


def test_in_a_folder_without_logs_facts_are_read(tmp_path: Path) -> None:
    write(tmp_path, "describe.txt", "facts.json", "requirements.txt", "inner/pod.json")
    assert {log.name for log in find_logs([tmp_path])} == {"describe.txt", "facts.json"}
    write(tmp_path, "inner/train.log")
    assert {log.name for log in find_logs([tmp_path])} == {"inner/train.log"}


def test_a_file_that_vanishes_is_an_input_error(tmp_path: Path) -> None:
    write(tmp_path, "train.log")
    (log,) = find_logs([tmp_path])
    (tmp_path / "train.log").unlink()
    with pytest.raises(InputError, match=r"train\.log cannot be read"):
        content(log)


def test_a_folder_s_logs_are_found_by_their_names(tmp_path: Path) -> None:
    logs = {
        "train.log", "train.log.1", "train.log.gz", "job.out", "job.err", "notes.txt",
        "slurm-4242.out", "slurm-4242_7.out.zst", "run.o4242", "run.e4242", "stdout", "stderr.gz",
        "rank_3", "worker-0", "log", "a/b/0/stderr.log", "logs/rank0.txt",
    }  # fmt: skip
    others = {"model.pt", "train.py", "config.yaml", "data.csv", "logo.png", "a/dialog", "x.login"}
    write(tmp_path, *logs, *others)
    assert {log.name for log in find_logs([tmp_path])} == logs


def test_a_file_given_is_read_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, "strange.name")
    (log,) = find_logs([tmp_path / "strange.name"])
    assert log.name == (tmp_path / "strange.name").as_posix()


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_3.log", 3),
        ("rank3.log.gz", 3),
        ("logs/rank-12/stdout", 12),
        ("global_rank=7.txt", 7),
        ("attempt_0/3/stderr.log", 3),
        ("run_x/attempt_1/12/error.json", 12),
        ("3/stdout.log", 3),
        ("rank.2/stderr", 2),
        ("worker-5.log", 5),
        ("worker_5/log.txt", 5),
        ("gpu0.out", 0),
        ("slurm-4242_3.out", 3),
        ("train.11.log", 11),
        ("4242.3.out", 3),
        ("slurm-4242.out", None),
        ("train.log", None),
        ("2024-05-01.log", None),
        ("train_12-30-45.log", None),
        ("4242.out", None),
        ("epoch.txt", None),
        ("resnet50.log", None),
        ("train.log.1", None),
    ],
)
def test_the_rank_that_a_name_tells(name: str, rank: int | None) -> None:
    assert rank_of(name) == rank


def test_of_a_restarted_job_the_last_attempt_counts(tmp_path: Path) -> None:
    write(tmp_path, "run/attempt_0/0/stderr.log", "run/attempt_1/0/stderr.log", "stdout.log")
    write(tmp_path, "other/attempt_0/0/stderr.log")
    assert {log.name: log.restarts for log in find_logs([tmp_path])} == {
        "run/attempt_1/0/stderr.log": 1,
        "other/attempt_0/0/stderr.log": 0,
        "stdout.log": 0,
    }


def test_torchelastic_error_files(tmp_path: Path) -> None:
    callstack = "Traceback (most recent call last):\n  ...\nKeyError: 'lr'"
    recorded = {"message": {"message": "KeyError: 'lr'",
                            "extraInfo": {"py_callstack": callstack, "timestamp": "1714564800"}}}  # fmt: skip
    write(tmp_path, "attempt_0/3/error.json")
    (tmp_path / "attempt_0/3/error.json").write_text(json.dumps(recorded))
    (log,) = find_logs([tmp_path])
    assert (log.rank, log.time) == (3, 1714564800.0)
    assert content(log).decode() == callstack


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '{"message": 3}', '{"message": {"extraInfo": 1}}', "[" * 100_000]
)
def test_any_other_error_file_is_a_log_like_others(tmp_path: Path, text: str) -> None:
    (tmp_path / "error.json").write_text(text)
    (log,) = find_logs([tmp_path])
    assert content(log) == text.encode()
