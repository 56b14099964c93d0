"""Asking a process for the dump of its flight recorder."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from epochzero.run.observers.child.collectives import COLLECTIVES_FOLDER, begin_torch, listen
from epochzero.run.observers.child.stacks import FILE_VARIABLE
from epochzero.run.observers.collectives import ask_for_dumps

DUMP = b'{"entries": [{"profiling_name": "gloo:all_reduce"}]}'


def test_a_process_answers_and_no_other_pipe_under_its_number_is_written_to(
    tmp_path: Path,
) -> None:
    pid, folder = os.getpid(), tmp_path / COLLECTIVES_FOLDER
    listen(str(folder), lambda: 3, [lambda *_: DUMP])
    ask_for_dumps(tmp_path, [pid, 1])
    answer = folder / f"{pid}.trace_3.json"
    while not answer.exists():
        time.sleep(0.01)
    assert answer.read_bytes() == DUMP

    own = int((folder / str(pid)).read_text().split()[0])
    reader, writer = os.pipe()
    os.dup2(writer, own)  # The job has closed the descriptor and uses its number.
    ask_for_dumps(tmp_path, [pid])
    os.set_blocking(reader, False)
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    for descriptor in (reader, writer, own):
        os.close(descriptor)


def test_a_limit_of_threads_does_not_end_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    listen(str(tmp_path / COLLECTIVES_FOLDER), lambda: 0, [lambda *_: DUMP])


@pytest.mark.needs_torch
def test_without_the_private_function_of_torch_the_public_one_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed import distributed_c10d

    monkeypatch.delattr(distributed_c10d, "_new_process_group_helper")
    for module in (distributed_c10d, torch.distributed):
        monkeypatch.setattr(module, "init_process_group", lambda *_: "group")
    begin_torch(torch, {FILE_VARIABLE: str(tmp_path / "stacks.txt")})

    assert torch.distributed.init_process_group("gloo") == "group"
    assert (tmp_path / COLLECTIVES_FOLDER / str(os.getpid())).exists()
