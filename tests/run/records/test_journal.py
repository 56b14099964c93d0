"""The journal keeps what was written, whatever is cut off or damaged."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.run.records.journal import NAME, Journal, read_journal
from epochzero.run.records.model import (
    End,
    GpuSample,
    JobProgress,
    Note,
    Sample,
    Start,
    record_of,
    to_dict,
)

STARTED = Start("j1", 1, "train", ("python", "train.py"), "/job", "node1", "ann", 42, 1e9, gpus=8)
SAMPLE = Sample(1e9, 1.0, 3, 250.0, 1 << 30, 1 << 34, gpus=(GpuSample(0, 98.0, 1 << 33, 1 << 36),))
ENDED = End(1e9 + 5, 5.0, 137, signal=9)


def _kept(path: Path) -> list[object]:
    return [record for _, record in read_journal(path)]


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a")
    for record in (STARTED, SAMPLE, ENDED):
        journal.write(record)
    journal.close()
    assert _kept(journal.path) == [STARTED, SAMPLE, ENDED]


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_what_json_does_not_have_is_null(tmp_path: Path, loss: float) -> None:
    journal = Journal(tmp_path)
    journal.write(JobProgress(1e9, 1.0, step=3, loss=loss))
    journal.close()
    _, _, text = journal.path.read_text().partition(" ")
    assert json.loads(text)["loss"] is None
    assert _kept(journal.path) == [JobProgress(1e9, 1.0, step=3)]


def test_a_secret_of_the_command_is_not_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(replace(STARTED, command=("train.py", "--db-password", "hunter2x")))
    journal.close()
    assert b"hunter2x" not in journal.path.read_bytes()
    assert _kept(journal.path) == [
        replace(STARTED, command=("train.py", "--db-password", "[redacted]"))
    ]


def test_a_number_that_an_older_journal_holds_is_read_as_null(tmp_path: Path) -> None:
    text = json.dumps(to_dict(JobProgress(1e9, 1.0, loss=math.nan))).encode()
    (tmp_path / NAME).write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    assert _kept(tmp_path / NAME) == [JobProgress(1e9, 1.0)]


@given(st.integers(min_value=0, max_value=2000))
def test_a_journal_that_was_cut_off_loses_its_last_record_only(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        for record in (STARTED, SAMPLE, ENDED):
            journal.write(record)
        journal.close()
        whole = journal.path.read_bytes()
        journal.path.write_bytes(whole[:cut])
        expected = [STARTED, SAMPLE, ENDED][: whole[:cut].count(b"\n")]
        assert _kept(journal.path) == expected


def test_a_damaged_line_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for record in (STARTED, SAMPLE, ENDED):
        journal.write(record)
    journal.close()
    lines = journal.path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"250.0", b"950.0")
    journal.path.write_bytes(b"".join(lines))
    assert _kept(journal.path) == [STARTED, ENDED]


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(STARTED)
    ((end, _),) = read_journal(journal.path)
    journal.write(ENDED, now=True)
    assert [record for _, record in read_journal(journal.path, end)] == [ENDED]
    journal.close()


def test_a_torn_line_does_not_swallow_what_is_written_later(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(STARTED)
    journal.close()
    journal.path.write_bytes(journal.path.read_bytes() + b"0badc0de {")
    journal = Journal(tmp_path)
    journal.write(ENDED)
    journal.close()
    assert _kept(journal.path) == [STARTED, ENDED]


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from epochzero.run.records.journal import Journal; from epochzero.run.records.model import Note\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(10**9):\n"
        "    journal.write(Note(0.0, 0.0, str(number)), now=True); print(number, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline()) for _ in range(50)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in child.stdout.read().splitlines()]
    child.wait()
    child.stdout.close()
    kept = [
        int(record.text) for _, record in read_journal(tmp_path / NAME) if isinstance(record, Note)
    ]
    assert kept[: len(acknowledged)] == acknowledged


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_loses_records_and_not_the_job(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to("/dev/full")
    journal = Journal(tmp_path)
    journal.write(ENDED)
    journal.close()
    assert journal.lost == 1


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="records cannot be written"):
        Journal(tmp_path / "file" / "attempt")


def test_a_record_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    assert record_of({**to_dict(ENDED), "mood": "grim"}) == ENDED
    with pytest.raises(InputError, match="kind 'ended' is incomplete"):
        record_of({"kind": "ended"})
    with pytest.raises(InputError, match="unknown kind of record"):
        record_of({"kind": "dance"})
