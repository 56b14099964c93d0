"""Files of data: whole ones, cut ones, empty ones, and any bytes at all."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.paths import contents
from epochzero.check.paths.contents import ReadMethod, columns, format_of, inspect


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png() -> bytes:
    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    pixels = zlib.compress(os.urandom(9) * 8)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((50, 4)))
    return file.getvalue()


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("a/data.pkl", b"x" * 500)
    return file.getvalue()


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as opened:
        for name in "ab":
            member = tarfile.TarInfo(name)
            member.size = 3000
            opened.addfile(member, io.BytesIO(b"x" * 3000))
    return file.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(36)


WHOLE = {
    "json": json.dumps({"a": list(range(50))}).encode(),
    "jsonl": b'{"a": 1, "b": "xyz"}\n' * 10,
    "png": png(),
    "npy": npy(),
    "zip": archive(),
    "torch": archive(),
    "tar": tar(),
    "pickle": pickle.dumps({"weights": list(range(100))}),
    "gzip": gzip.compress(os.urandom(2000)),
    "safetensors": safetensors(),
    "parquet": b"PAR1" + bytes(90) + b"PAR1",
    "jpeg": b"\xff\xd8\xff\xe0" + bytes(200) + b"\xff\xd9",
}


def write(folder: Path, data: bytes) -> str:
    path = folder / "file"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_file_has_no_fault(kind: str, tmp_path: Path) -> None:
    assert inspect(write(tmp_path, WHOLE[kind]), ReadMethod(kind)) is None


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_that_is_cut_is_noticed(kind: str, tmp_path: Path) -> None:
    data = WHOLE[kind]
    fault = inspect(write(tmp_path, data[: len(data) * 2 // 3]), ReadMethod(kind))
    assert fault is not None
    assert fault.kind == "truncated"


@pytest.mark.parametrize("kind", [kind for kind in WHOLE if kind != "jsonl"])
def test_an_empty_file_is_noticed(kind: str, tmp_path: Path) -> None:
    fault = inspect(write(tmp_path, b""), ReadMethod(kind))
    assert fault is not None
    assert fault.kind == "empty"


@pytest.mark.parametrize("kind", WHOLE)
def test_a_pointer_of_git_lfs_is_noticed(kind: str, tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    fault = inspect(write(tmp_path, pointer), ReadMethod(kind))
    assert fault is not None
    assert "Git LFS" in fault.what


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_another_encoding_is_noticed_wherever_it_is(where: float, tmp_path: Path) -> None:
    lines = [b"pos\ta film\n"] * 30_000
    lines[min(int(where * 30_000), 29_999)] = b"pos\tl'ann\xe9e\n"
    fault = inspect(write(tmp_path, b"".join(lines)), ReadMethod("text"))
    assert fault is not None
    assert fault.kind == "encoding"
    assert inspect(write(tmp_path, b"".join(lines)), ReadMethod("text", strict=False)) is None
    assert inspect(write(tmp_path, b"".join(lines)), ReadMethod("text", "latin-1")) is None


def test_a_large_text_in_utf_8_has_no_fault(tmp_path: Path) -> None:
    text = "größe\n" * 60_000
    assert inspect(write(tmp_path, text.encode()), ReadMethod("text")) is None


def test_a_row_with_too_many_fields_is_named_by_its_line(tmp_path: Path) -> None:
    fault = inspect(write(tmp_path, b"a,b\n1,2\n1,2,3\n"), ReadMethod("csv"))
    assert fault is not None
    assert "line 3" in fault.what


def test_a_table_with_an_index_without_a_name_has_no_fault(tmp_path: Path) -> None:
    assert inspect(write(tmp_path, b"a,b\nx,1,2\ny,3,4\n"), ReadMethod("csv")) is None


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, (str(tmp_path / "made"),))

    assert inspect(write(tmp_path, pickle.dumps(Hostile())), ReadMethod("pickle")) is None
    assert not (tmp_path / "made").exists()


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (pipe, loop, tmp_path, tmp_path / "none"):
        assert inspect(str(path), ReadMethod("csv")) is None


def test_the_header_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeff"a b",c\n1,2\n'.encode())
    assert columns(path, "utf-8", ",") == ["a b", "c"]
    assert columns(str(tmp_path / "none"), "utf-8", ",") is None


def test_objects_in_an_array_are_pickled(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.array([{}, 1], dtype=object), allow_pickle=True)
    for data in (file.getvalue(), pickle.dumps([1])):
        path = write(tmp_path, data)
        assert inspect(path, ReadMethod("npy")) is None
        fault = inspect(path, ReadMethod("npy", pickles=False))
        assert fault is not None
        assert "allow_pickle" in fault.what
    assert inspect(write(tmp_path, npy()), ReadMethod("npy", pickles=False)) is None


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("x.json", "text", "text"),
        ("x.json", "json", "json"),
        ("x.csv.gz", "csv", "gzip"),
        ("x.csv.zst", "csv", ""),
        ("x.png", "image", "png"),
        ("x.dat", "image", ""),
        ("x.npz", "npy", "npy"),
        ("x.tar.gz", "tar", "gzip"),
        ("weights.safetensors", "torch", "safetensors"),
    ],
)
def test_the_call_says_more_than_the_name(name: str, said: str, kind: str) -> None:
    assert format_of(name, said) == kind


KINDS = sorted(contents._LOOKS)


@given(st.sampled_from(KINDS), st.sampled_from(sorted(WHOLE)), st.binary(max_size=400), st.data())
def test_no_bytes_make_it_fail(kind: str, like: str, data: bytes, draw: st.DataObject) -> None:
    base = WHOLE[like]
    at = draw.draw(st.integers(0, len(base)))
    mixed = base[:at] + data + base[at + len(data) :]
    for one in (data, mixed):
        file = io.BytesIO(one)
        # These are what `inspect` takes for "nothing can be told".
        with contextlib.suppress(OSError, ValueError, OverflowError, MemoryError, RecursionError):
            contents._inspect(file, len(one), ReadMethod(kind))
