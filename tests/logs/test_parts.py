"""A log scanned in parts is the log scanned at once: every region, line, count and event of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.logs import parts as splitting
from epochzero.logs import scan as scanning
from epochzero.logs import source
from epochzero.logs.events import events_of
from epochzero.logs.parts import join_parts, scan_part, starts_of
from epochzero.logs.scan import Scan, Scanner
from epochzero.logs.source import Log

SCANNER = Scanner(("gradient overflow",))
LAB = Path(__file__).resolve().parents[2] / "lab" / "logs"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sizes a few hundred times smaller, so that a small log meets each of them."""
    for module, name, size in (
        (source, "BLOCK_BYTES", 256), (source, "LONGEST_LINE_BYTES", 700),
        (scanning, "GAP_BYTES", 100), (scanning, "REGION_BYTES", 400),
        (scanning, "PROGRESS_BYTES", 300), (scanning, "SAMPLE_BYTES", 60),
        (scanning, "TAIL_BYTES", 1500), (scanning, "END_BYTES", 80), (scanning, "ALIKE", 3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, size)


def in_parts(text: bytes, step: int) -> tuple[Scan | None, int]:
    """The joined scan, and of how many parts that are not empty."""
    starts = starts_of(len(text), step)
    parts = [scan_part(SCANNER, io.BytesIO(text), len(text), starts, n) for n in range(len(starts))]
    if None in parts:
        return None, 0
    scan = join_parts(SCANNER, [part for part in parts if part], len(text))
    return scan, sum(bool(part and part.scan.size) for part in parts)


def check_same(text: bytes, step: int) -> int:
    log = Log("train.log", text=text)
    whole = SCANNER.scan(log)
    joined, count = in_parts(text, step)
    assert joined == whole
    assert [*events_of(log, joined, SCANNER.anchors)] == [*events_of(log, whole, SCANNER.anchors)]
    return count


RANKS = st.sampled_from([b"", b"[rank0]: ", b"[rank1]: ", b"[rank7]: ", b"2: "])
LINES = st.sampled_from(
    [
        b"all is quiet",
        b"Epoch 3: loss 0.5",
        b"2024-05-01 10:00:09 step 12 loss 0.25",
        b"RuntimeError: boom",
        b"Traceback (most recent call last):",
        b'  File "train.py", line 3, in <module>',
        b"ValueError: of the loader",
        b"ValueError: of shard 17",
        b"gradient overflow",
        b"WARNING: worker failed, retry 3",
        b"",
        b"z" * 90,
        b"z" * 1500,
        b"training complete",
    ]
)
PARAGRAPHS = st.one_of(
    st.lists(st.tuples(RANKS, LINES).map(b"".join), max_size=8),
    st.integers(1, 60).map(lambda n: [b"[rank1]: step %d loss 0.5" % i for i in range(n)]),
    st.integers(1, 60).map(lambda n: [b"quiet %d" % i for i in range(n)]),
    st.integers(1, 30).map(lambda n: [b"[rank3]: Error: bad record %d" % i for i in range(n)]),
)


@given(paragraphs=st.lists(PARAGRAPHS, max_size=30), step=st.sampled_from([256, 512, 1024, 2048]),
       ended=st.booleans())  # fmt: skip
@pytest.mark.usefixtures("small")
def test_parts_are_the_whole(paragraphs: list[list[bytes]], step: int, ended: bool) -> None:
    check_same(b"\n".join(line for part in paragraphs for line in part) + b"\n" * ended, step)


@pytest.mark.usefixtures("small")
def test_a_log_with_quiet_places_has_parts_and_one_without_has_none() -> None:
    quiet = b"".join(b"step %d loss 0.5\n" % n for n in range(300))
    failed = b"Traceback (most recent call last):\nValueError: of shard 17\n"
    assert check_same(quiet + failed + quiet + failed, 1024) > 5
    assert check_same(b"Error: bad record\n" * 600, 1024) == 1


@pytest.mark.usefixtures("small")
def test_a_log_of_more_than_can_be_kept_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = b"".join(b"step %d loss 0.5\n" % n for n in range(30))
    kinds = [b"ValueError: of %s\n" % (b"a" * n) + quiet for n in range(1, 40)]
    text = b"".join(kinds)
    assert in_parts(text, 1024)[0] is not None
    monkeypatch.setattr(scanning, "MOST_KINDS", 5)
    monkeypatch.setattr(scanning, "KEPT_BYTES", 20_000)
    assert in_parts(text, 1024)[0] is None, "more kinds than are told apart"
    monkeypatch.setattr(scanning, "KEPT_BYTES", 1000)
    assert in_parts(text, 1024)[0] is None, "more regions in a part than are kept of all"


def test_the_logs_of_the_lab_in_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(splitting, "SEARCHED_BLOCKS", 40)
    quiet = b"".join(b"[rank3]: step %d loss 0.5\n" % n for n in range(500))
    logs = [path.read_bytes() for path in sorted(LAB.rglob("*.log"))]
    for text in logs:
        check_same(text, 8192)
    assert check_same(quiet.join(logs), 64 << 10) > 20
