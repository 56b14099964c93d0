"""Logs are bounded, keep head and tail, and know whose a line is, however the bytes are cut."""

from __future__ import annotations

import re
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Output
from epochzero.run.records.output import Logs

LINE = st.one_of(
    st.builds(lambda rank, text: b"[default%d]:%s" % (rank, text), st.integers(0, 3), st.binary()),
    st.binary(max_size=40),
    st.sampled_from([b"[", b"[default", b"[default1]", b"[rank2]: x", b"\r", b"a\r"]),
)


def _kept(folder: Path, output: Output) -> bytes:
    return b"".join((folder / path).read_bytes() for path in output.paths)


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(at)]


@given(st.lists(LINE), st.lists(st.integers(0, 10_000)))
def test_each_rank_has_its_whole_lines(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    expected: dict[str, bytes] = {}
    for line in re.findall(rb"[^\n]*\n", data):
        if rank := re.match(rb"\[(?:default|rank)(\d{1,5})\]:", line):
            name = f"rank{int(rank[1])}"
            expected[name] = expected.get(name, b"") + line
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = Logs(folder, 1 << 20)
        for piece in _pieces(data, cuts):
            logs.write("stdout", piece)
        outputs = {output.name: _kept(folder, output) for output in logs.close(Clock())}
    assert outputs.pop("output") == data
    assert outputs == expected


@given(st.lists(LINE), st.lists(st.integers(0, 10_000)))
def test_line_ends_of_a_terminal_are_undone(lines: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(lines)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = Logs(folder, 1 << 20, terminal="stdout")
        for piece in _pieces(data.replace(b"\n", b"\r\n"), cuts):
            logs.write("stdout", piece)
        assert _kept(folder, logs.close(Clock())[0]) == data


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=60), st.integers(4, 200))
def test_head_and_tail_are_kept_and_the_rest_is_counted(pieces: list[bytes], keep: int) -> None:
    data = b"".join(pieces)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = Logs(folder, keep)
        for piece in pieces:
            logs.write("stdout", piece)
        output = logs.close(Clock())[0]
        kept = _kept(folder, output)
        assert sorted(path.name for path in folder.iterdir()) == sorted(output.paths)
    assert output.size == len(data)
    assert len(kept) == output.size - output.dropped <= 2.25 * keep + 2
    assert kept[:keep] == data[:keep]
    assert data.endswith(kept[keep:])
    assert len(kept) >= min(len(data), 2 * keep - keep % 4)


def test_a_folder_that_goes_away_loses_output_only(tmp_path: Path) -> None:
    folder = tmp_path / "attempt"
    folder.mkdir()
    logs = Logs(folder, 4)
    logs.write("stdout", b"head")
    (folder / "output.log").unlink()
    folder.rmdir()
    logs.write("stdout", b"more")
    output = logs.close(Clock())[0]
    assert (output.size, output.dropped) == (8, 4)
