"""The one pass over the bytes: what it finds, where, and within which memory."""

from __future__ import annotations

import random
import string
import sys
import tracemalloc
from collections.abc import Iterator
from importlib import import_module
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.logs import scan as scanning
from epochzero.logs import source
from epochzero.logs.events import events_of
from epochzero.logs.scan import Region, Scan, Scanner
from epochzero.logs.source import Block, Log, OnDamage, ignore_damage

SCANNER = Scanner(("gradient overflow",))


def scan(text: bytes, block_bytes: int = 1 << 20) -> Scan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", block_bytes)
        return SCANNER.scan(Log("train.log", text=text))


def places(regions: list[Region]) -> list[tuple[object, ...]]:
    return [(region.offset, region.line, region.text, region.hits) for region in regions]


def hit_lines(found: Scan, text: bytes) -> list[int]:
    """The numbers of the lines that were hit, counted by a naive reference."""
    return [text.count(b"\n", 0, hit.start) + 1 for region in found.regions for hit in region.hits]


def filler(lines: int) -> bytes:
    return b"".join(b"all is quiet %d\n" % n for n in range(lines))


def test_a_line_with_a_cue_is_found_with_its_neighbours() -> None:
    text = filler(50) + b"RuntimeError: boom\n" + filler(50)
    (region,) = scan(text).regions
    assert region.line == 51 - scanning.BEFORE_LINES
    assert region.text.count(b"\n") == scanning.BEFORE_LINES + 1 + scanning.AFTER_LINES
    assert text[region.offset :].startswith(region.text)
    (hit,) = region.hits
    assert text[hit.start : hit.end] == b"RuntimeError: boom"


@pytest.mark.parametrize("name", [b"KeyError", b"MemoryError", b"models.ShapeException"])
def test_a_log_may_end_without_a_line_end(name: bytes) -> None:
    text = b"start\n" + name
    assert hit_lines(scan(text), text) == hit_lines(scan(text + b"\n"), text + b"\n") == [2]


@pytest.mark.parametrize(
    "text",
    [
        b"Killed\n",
        b"Killed",
        b"\nKilled",
        b"a\nb\nKilled\nc\n",
        b"\n\n\nKilled\n\n\n",
        b"x\nKilled",
    ],
)
def test_the_ends_of_a_log_belong_to_it(text: bytes) -> None:
    (region,) = scan(text).regions
    assert (region.offset, region.line, region.text) == (0, 1, text)


@pytest.mark.parametrize("text", [b"", b"\n", filler(1000), b"\0" * 5000, b"\xff\xfe" * 100])
def test_a_log_without_cues_has_no_regions(text: bytes) -> None:
    found = scan(text)
    assert (found.regions, found.size) == ([], len(text))


def test_anchors_are_found_like_cues() -> None:
    found = scan(filler(3) + b"gradient overflow\n")
    (hit,) = found.regions[0].hits
    assert [SCANNER.anchors[cue] for cue in hit.cues if cue in SCANNER.anchors] == [
        "gradient overflow"
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"\0\0\0RuntimeError: boom",
        b" 10%|#  |\r 20%|## |\rRuntimeError: boom",
        b"\x1b[31mRuntimeError: boom\x1b[0m",
        b"\xff\xfeRuntimeError: boom\x80",
        "Datei nicht gefunden — RuntimeError: größer".encode(),
        b"RuntimeError: " + b"x" * 100_000,
        b"x" * 100_000 + b"RuntimeError: boom",
        b"RuntimeError: boom\r",
    ],
    ids=["NUL", "bar", "colour", "invalid UTF-8", "UTF-8", "long after", "long before", "CRLF"],
)
def test_whatever_stands_in_a_line_it_is_one_line(line: bytes) -> None:
    text = filler(20) + line + b"\n" + filler(20)
    found = scan(text)
    assert hit_lines(found, text) == [21]
    (hit,) = found.regions[0].hits
    assert text[hit.start : hit.end] == line


def test_a_line_longer_than_any_block_keeps_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE_BYTES", 500)
    text = filler(5) + b"y" * 5000 + b" RuntimeError: boom " + b"y" * 5000 + b"\n" + b"Killed\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", 100)
        regions = SCANNER.scan(Log("x", text=text)).regions
    numbers = {text.count(b"\n", 0, hit.start) + 1 for region in regions for hit in region.hits}
    assert numbers == {6, 7}
    assert all(text.count(b"\n", 0, r.offset) + 1 == r.line for r in regions)


LINES = st.sampled_from(
    [
        b"all is quiet",
        b"Epoch 3: loss 0.5",
        b"RuntimeError: boom",
        b"Traceback (most recent call last):",
        b'  File "train.py", line 3, in <module>',
        b"ValueError",
        b"gradient overflow",
        b"",
        b"z" * 60,
        b"z" * 1500,
        b"training complete",
    ]
)


@given(
    lines=st.lists(st.lists(LINES, max_size=6) | st.just([b"quiet"] * 15), max_size=12),
    block_bytes=st.sampled_from([1, 7, 64, 300, 5000]),
    ended=st.booleans(),
)
def test_where_blocks_end_makes_no_difference(
    lines: list[list[bytes]], block_bytes: int, ended: bool
) -> None:
    text = b"\n".join(line for part in lines for line in part) + b"\n" * ended
    whole, pieces = scan(text), scan(text, block_bytes)
    assert places(pieces.regions) == places(whole.regions)
    for name in ("size", "head", "tail", "completed", "skipped"):
        assert getattr(pieces, name) == getattr(whole, name), name


@given(st.lists(LINES | st.binary(max_size=30), max_size=60))
def test_lines_are_numbered_as_a_naive_reader_would(lines: list[bytes]) -> None:
    text = b"\n".join(lines)
    last = -1
    for region in scan(text).regions:
        assert region.line == text.count(b"\n", 0, region.offset) + 1
        assert text[region.offset : region.offset + len(region.text)] == region.text
        for hit in region.hits:
            assert last < hit.start <= hit.end
            assert region.offset <= hit.start
            assert hit.end <= region.offset + len(region.text)
            assert hit.start == 0 or text[hit.start - 1 : hit.start] == b"\n"
            assert b"\n" not in text[hit.start : hit.end]
            last = hit.start


@given(st.binary(max_size=3000))
def test_any_bytes_can_be_scanned(text: bytes) -> None:
    assert scan(text, 256).size == len(text)


# -- Progress and ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"Epoch 3/10",
        b"[epoch: 3] loss=0.1",
        b"step 100: loss 2.5",
        b"iter 7000",
        b"global_step=5",
        b"train loss: 0.31",
        b" 45%|####5     | 9/20",
        b"157/1875 [=>....] - ETA: 9s",
    ],
)
def test_progress_after_a_region_is_seen(line: bytes) -> None:
    text = b"RuntimeError: boom\n" + filler(20) + line + b"\n"
    found = scan(text)
    assert line in [shown for _, shown in found.regions[0].progress]
    assert found.progress_blocks == 1


def test_quiet_lines_are_no_progress() -> None:
    found = scan(b"RuntimeError: boom\n" + b"loading model\n" * 20 + b"12 files\n")
    assert found.progress_blocks == 0
    assert found.regions[0].progress == ()


def test_a_good_end_is_seen() -> None:
    text = b"RuntimeError: retrying\n" + filler(5) + b"Training complete\n"
    assert scan(text).completed == len(text) - 1
    assert scan(filler(5)).completed == -1


# -- Bounds ------------------------------------------------------------------------------------


def numbered(count: int, line: bytes = b"WARNING: worker failed, retry %d\n") -> bytes:
    return b"".join(line % n + filler(20) for n in range(count))


def test_of_regions_that_look_alike_the_first_and_the_last_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanning, "ALIKE", 5)
    text = numbered(100)
    found = scan(text)
    shown = [text[h.start : h.end] for r in found.regions for h in r.hits]
    wanted = [*range(5), *range(95, 100)]
    assert shown == [b"WARNING: worker failed, retry %d" % n for n in wanted]
    assert found.skipped == 90


def test_another_kind_among_many_alike_is_kept_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanning, "ALIKE", 5)
    text = numbered(50) + b"KeyError: 'lr'\n" + filler(20) + numbered(50)
    found = scan(text)
    offsets = [region.offset for region in found.regions]
    assert offsets == sorted(offsets)
    assert hit_lines(found, text)[5] == 50 * 21 + 1


class Endless(Log):
    """A log of distinct error lines, made up while it is read."""

    mebibytes = 2

    def blocks(self, on_damage: OnDamage = ignore_damage) -> Iterator[Block]:
        words = random.Random(0)
        offset = 0
        while offset < self.mebibytes << 20:
            names = words.choices(string.ascii_letters, k=9000)
            lines = [
                f"Error: cannot read {''.join(names[n : n + 12])}\n" + "quiet\n" * 15
                for n in range(9000 - 12)
            ]
            data = "".join(lines).encode()
            yield Block(offset, data)
            offset += len(data)


def test_memory_is_bounded_however_many_errors_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "KEPT_BYTES", 1 << 17)
    import_module("epochzero.logs.dense")  # NumPy is loaded once, not for each log
    tracemalloc.start()
    try:
        found = SCANNER.scan(Endless("endless.log"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.passed_over > 10_000
    assert peak < 10 << 20
    assert found.regions[0].line == 1
    assert found.regions[-1].offset > found.size - (1 << 20)


def test_a_log_full_of_errors_is_split_into_regions_of_bounded_size() -> None:
    text = b"Error: bad record in shard\n" * 40_000
    found = scan(text)
    assert max(len(region.text) for region in found.regions) <= scanning.REGION_BYTES + 20_000
    hits = sum(len(region.hits) for region in found.regions)
    assert hits < 2000
    assert hits + found.passed_over == 40_000


REPEATED = "Traceback (most recent call last):\n  File \"train.py\", line 3, in f\nKeyError: 'lr'\n"


@pytest.mark.parametrize(
    "line",
    [
        REPEATED,
        REPEATED + "step 3 loss 0.1\n",
        "worker {n:x}: Error: request {n:x} failed\nstep {n} loss 0.1\n",
    ],
)
def test_work_grows_as_the_log(line: str) -> None:
    """Instructions are counted, as time depends on what else the machine does."""
    short, long = (
        _instructions("".join(line.format(n=n) for n in range(count))) for count in (150, 600)
    )
    assert long < 4.6 * short


def _instructions(text: str) -> int:
    log = Log("train.log", text=text.encode())
    scan = SCANNER.scan(log)
    count = 0

    def trace(frame: FrameType, event: str, _arg: object) -> object:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert list(events_of(log, scan, SCANNER.anchors))
    finally:
        sys.settrace(before)
    return count


def test_of_lines_that_all_differ_a_bounded_number_is_kept() -> None:
    words = ("".join(random.Random(n).choices("abcdefgh", k=20)) for n in range(40_000))
    text = "".join(f"{word}: Error: no answer\n" for word in words)
    scan = SCANNER.scan(Log("train.log", text=text.encode() * 5))
    assert sum(region.kinds for region in scan.regions) < 3000
    assert scan.regions[-1].hits[-1].end == 5 * len(text) - 1
    assert scan.passed_over > 190_000


DENSE = "".join(f"{n:x}: Error: no answer from {n * 7:x}\n" for n in range(20_000))
FAILED = (
    "Traceback (most recent call last):\n"
    + "".join(
        f'  File "/job/layer.py", line {n}, in forward\n    return x\n    ^^^^^^^^\n'
        for n in range(20)
    )
    + "RuntimeError: gradient overflow\n"
)


@pytest.mark.parametrize("before", [0, 4])
@pytest.mark.parametrize("after", [0, 4])
def test_a_traceback_among_very_many_errors_is_read_as_a_whole(before: int, after: int) -> None:
    log = Log("train.log", text=(DENSE * before + FAILED + DENSE * after).encode())
    found = [
        event
        for event in events_of(log, SCANNER.scan(log), SCANNER.anchors)
        if event.kind == "exception"
    ]
    assert [(event.message[:17], len(event.frames)) for event in found] == [
        ("gradient overflow", 20)
    ]
    assert found[0].line == before * 20_000 + 62


def test_lines_that_are_passed_over_are_no_ordinary_output() -> None:
    log = Log("train.log", text=(FAILED + DENSE * 3).encode())
    failed = next(iter(events_of(log, SCANNER.scan(log), SCANNER.anchors)))
    assert failed.kind == "exception"
    assert failed.later == failed.log_later == 0


def test_of_a_dense_log_the_chatter_is_not_read_and_its_completion_is() -> None:
    chatter = "node1:12:34 [0] NCCL INFO Error: none\n" * 20_000
    scan = SCANNER.scan(Log("train.log", text=(DENSE + chatter + "Training complete\n").encode()))
    assert scan.completed > len(DENSE + chatter)
    assert not any(
        b"NCCL" in region.between(h.start, h.end) for region in scan.regions for h in region.hits
    )


def test_without_numpy_every_line_with_a_cue_is_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "epochzero.logs.dense", None)
    scan = SCANNER.scan(Log("train.log", text=DENSE.encode()))
    assert sum(len(region.hits) for region in scan.regions) + scan.skipped >= 20_000
    assert scan.passed_over == 0
