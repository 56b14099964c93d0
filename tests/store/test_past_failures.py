"""What the store knows of past runs that were out of a GPU's memory, on both engines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochzero import diagnose
from epochzero.check import PastPeak
from epochzero.check.dryrun.memory.history import Correction, correction
from epochzero.check.launch import read_job
from epochzero.run.records.model import Conclusion, End, JobSnapshot, Record
from epochzero.store.database import Database, open_database, open_to_read
from epochzero.store.gpu_history import past_peaks
from epochzero.store.recorder import sweep
from tests.store.jobs import START, Runs, started

GIB = 1 << 30
COMMAND = ("python", "train.py", "--batch", "64")
LOG = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
14.56 GiB of which 1.05 GiB is free. Process 1 has 13.51 GiB memory in use. Of the allocated memory \
12.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.
"""


def out_of_memory(folder: Path, number: int, *gpus: str) -> list[Record]:
    log = folder / f"{number}.log"
    log.write_text(LOG)
    return [
        started(f"job{number}", command=COMMAND, folder=str(folder)),
        JobSnapshot(START, 0.1, gpus=gpus),
        End(START + 60, 60.0, 1),
        Conclusion(START + 61, 61.0, diagnosis=diagnose(log).to_dict()),
    ]


def test_a_run_that_was_out_of_memory_counts_for_the_same_job(
    database: Database, runs: Runs, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    os.utime(script, (START, START))
    for number, gpus in enumerate([("Tesla T4",), ("Tesla T4",), (), ("Tesla T4", "A100")]):
        runs.write(out_of_memory(tmp_path, number, *gpus))
    sweep(database, runs.folder)
    found = past_peaks(database)
    command = f"{tmp_path}/train.py --batch 64"
    assert found == [PastPeak(command, "Tesla T4", 0, 12 * GIB, 2 * GIB)]
    (job,) = read_job(COMMAND, tmp_path).jobs
    expected = Correction(low=1.0, likely=1.4, high=1.4, runs=1)
    assert correction(found, job, "Tesla T4", now=10 * GIB) == expected
    (other,) = read_job(("python", "train.py", "--batch", "8"), tmp_path).jobs
    assert correction(found, other, "Tesla T4", now=10 * GIB).runs == 0
    os.utime(script, (START + 3600, START + 3600))
    assert past_peaks(database) == []


def test_a_store_is_not_made_to_be_read(tmp_path: Path) -> None:
    assert open_to_read(tmp_path / "none.db") is None
    (tmp_path / "empty.db").touch()
    assert open_to_read(tmp_path / "empty.db") is None
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty.db"]


def test_a_store_that_is_there_is_read(tmp_path: Path) -> None:
    open_database(tmp_path / "epochzero.db").close()
    database = open_to_read(f"sqlite:///{tmp_path}/epochzero.db")
    assert database is not None
    assert past_peaks(database) == []
    database.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_what_is_no_store_gives_the_check_no_history(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from epochzero.cli import store_options

    monkeypatch.setenv("EPOCHZERO_STORE", str(tmp_path / "x.db"))
    (tmp_path / "x.db").write_bytes(content)
    assert store_options.past_peaks() == ()
