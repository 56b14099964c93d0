"""Progress is read from what programs print, whatever else they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.run.observers.progress import (
    ProgressFormat,
    ProgressWatcher,
    formats,
    progressed,
    reported,
)
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent, JobProgress, Record
from tests.waiting import bounded_work, count_calls


def _examples() -> list[Any]:
    return [
        pytest.param(format, example, id=f"{format.name}-{number}")
        for format in formats()
        for number, example in enumerate(format.examples)
    ]


@pytest.mark.parametrize(("format", "example"), _examples())
def test_each_format_reads_its_examples(format: ProgressFormat, example: dict[str, Any]) -> None:
    line = example["line"]
    expected = {name: value for name, value in example.items() if name != "line"}
    assert format.reported(line, line.lower()) == expected
    assert reported(line).items() >= expected.items(), "another format tells it otherwise"


@pytest.mark.parametrize("format", formats(), ids=lambda format: format.name)
def test_each_format_leaves_what_is_none(format: ProgressFormat) -> None:
    assert format.leaves
    for line in format.leaves:
        assert format.reported(line, line.lower()) == {}


def read(*pieces: bytes) -> list[JobProgress]:
    """What a watcher leaves of output that comes so, with a second after each piece."""
    watcher = ProgressWatcher()
    found = list(watcher.started(1, Path(), Clock()))
    for piece in pieces:
        watcher.output("stderr", piece)
        found += watcher.tick()
    found += watcher.ended()
    assert all(isinstance(record, JobProgress) for record in found)
    return [record for record in found if isinstance(record, JobProgress)]


def test_lines_that_are_cut_anywhere_are_read_whole() -> None:
    text = b"\x1b[32mstep 1234 loss 0.5\x1b[0m\r\nstep 1299"
    for at in range(len(text)):
        *_, last = read(text[:at], text[at:])
        assert (last.step, last.loss) == (1299, 0.5)


def test_a_bar_that_is_drawn_over_itself() -> None:
    bars = "".join(f"\r{n}%|█  | {n}/100 [00:0{n}<01:30,  9.6it/s]" for n in range(1, 10))
    *_, progress = read(bars.encode())
    assert (progress.step, progress.steps) == (9, 100)


def test_a_new_epoch_begins_its_steps_anew() -> None:
    first, second = read(b"Epoch 1/2\n9/9 [=====] - 1s\n", b"Epoch 2/2\n")
    assert (first.epoch, first.step) == (1, 9)
    assert (second.epoch, second.step) == (2, None)


def test_what_the_job_reports_itself_counts_alone(tmp_path: Path) -> None:
    watcher = ProgressWatcher()
    watcher.started(1, tmp_path, Clock())
    watcher.output("stdout", b"Epoch 3/10\n")
    (tmp_path / "progress.jsonl").write_text('{"step": 1}\n')
    assert list(watcher.tick()) == []


def test_a_loss_that_is_no_number_any_more_is_told_once(tmp_path: Path) -> None:
    watcher = ProgressWatcher()
    watcher.started(1, tmp_path, Clock())
    records: list[Record] = []
    for line in (b"step 1 loss 2\n", b"step 2 loss nan\n", b"step 3 loss nan\n"):
        watcher.output("stdout", line)
        records += watcher.tick()
    events = [record.text for record in records if isinstance(record, JobEvent)]
    assert events == ["the loss is nan"]


def test_nothing_new_leaves_no_record() -> None:
    assert len(read(b"step 1 loss 2\n", b"hello\n", b"step 1 loss 2\n")) == 1


def test_a_checkpoint_is_found_in_a_flood() -> None:
    flood = b"x" * 80 + b"\n"
    (progress,) = read(flood * 1000 + b"saved to runs/3/last.pt\n" + flood * 1000)
    assert progress.checkpoint == "runs/3/last.pt"


@pytest.mark.parametrize(
    "line",
    [
        b"x" * (1 << 20),
        b"epoch " * (1 << 18),
        b"saving model " * (1 << 17),
        b"saving " + b"a/" * (1 << 19),
        b"{'loss' 'epoch': " * (1 << 16),
        b"1/1 " + b"=" * (1 << 20),
        b"Epoch 1 " + b" " * (1 << 20),
        b"Epoch 1 " + "━".encode() * (1 << 19),
        b"step " + b"1" * (1 << 20),
        b"%|" * (1 << 19),
        bytes(1 << 20),
    ],
    ids=lambda line: repr(line[:12]),
)
def test_no_line_takes_long(line: bytes) -> None:
    with bounded_work():
        read(line + b"\n", *[line[at : at + 1000] + b"\n" for at in range(0, 100_000, 1000)])


def test_a_flood_of_output_costs_little() -> None:
    second = b"step 100 loss 0.5 and some words more\r" * 6000
    watcher = ProgressWatcher()
    watcher.started(1, Path(), Clock())
    formats()

    def flood() -> None:
        for _ in range(10):
            for _ in range(10):
                watcher.output("stdout", second)
            watcher.tick()

    # 600,000 lines.
    assert count_calls(flood) < 400_000


@given(st.text())
def test_any_line_can_be_read(line: str) -> None:
    reported(line)


@given(st.lists(st.binary()))
def test_any_output_can_be_read(pieces: list[bytes]) -> None:
    read(*pieces)


def at(**told: Any) -> JobProgress:
    return JobProgress(0.0, 0.0, **told)


@pytest.mark.parametrize(
    ("before", "after", "further"),
    [
        (None, None, False),
        (at(step=5), None, False),
        (None, at(), False),
        (None, at(step=0), False),
        (None, at(step=1), True),
        (None, at(checkpoint="a.pt"), True),
        (at(step=5), at(step=5), False),
        (at(step=5), at(step=6), True),
        (at(step=5, checkpoint="a.pt"), at(step=4, checkpoint="b.pt"), False),
        (at(epoch=1, step=9), at(epoch=2, step=1), True),
        (at(epoch=2, step=1), at(epoch=1, step=9), False),
        (at(epoch=2), at(epoch=2, step=3), False),
        (at(checkpoint="a-1.pt"), at(checkpoint="a-2.pt"), True),
        (at(checkpoint="last.pt"), at(checkpoint="last.pt"), False),
        (at(), at(checkpoint="last.pt"), True),
    ],
)
def test_a_later_attempt_came_further(
    before: JobProgress | None, after: JobProgress | None, further: bool
) -> None:
    assert progressed(before, after) is further
