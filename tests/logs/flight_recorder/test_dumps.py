"""Dumps are untrusted: nothing in them runs, and whatever is damaged is said to be."""

from __future__ import annotations

import os
import pickle
import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.diagnose import diagnose
from epochzero.errors import InputError
from epochzero.logs.flight_recorder import dumps_since, read_dump
from epochzero.logs.source import find_logs
from tests.logs.flight_recorder.entries import entry, write


class Runs:
    """A pickle of it calls `os.system` when it is loaded by `pickle.load`."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> object:
        return os.system, (f"touch {self.file}",)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    dump = tmp_path / "nccl_trace_rank_0"
    dump.write_bytes(pickle.dumps({"entries": [Runs(tmp_path / "ran")], "pg_config": {}}, 2))

    with pytest.raises(InputError, match="damaged"):
        read_dump(dump)
    assert not (tmp_path / "ran").exists()


# A memo index and a bytearray of 2 GiB and 8 EiB, which the pickle reader in C allocates at once.
@pytest.mark.parametrize("code", [b"]r\xff\xff\xff\x7f.", b"\x96" + b"\xff" * 7 + b"\x7f."])
def test_a_pickle_that_asks_for_much_memory_gets_none(tmp_path: Path, code: bytes) -> None:
    dump = tmp_path / "nccl_trace_rank_0"
    dump.write_bytes(b"\x80\x05" + code)

    with pytest.raises(InputError, match="damaged"):
        read_dump(dump)


@given(seed=st.integers(0, 2**32), as_json=st.booleans())
def test_a_damaged_dump_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, seed: int, as_json: bool
) -> None:
    folder = write(tmp_path_factory.mktemp("dump"), {0: [entry(1), entry(2)]}, as_json=as_json)
    dump = folder / "nccl_trace_rank_0"
    chance = random.Random(seed)
    data = bytearray(dump.read_bytes())
    for _ in range(chance.randrange(1, 9)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    dump.write_bytes(data[: chance.randrange(1, len(data) + 1)])

    with suppress(InputError):
        assert read_dump(dump).rank == 0


def test_a_damaged_dump_does_not_hide_what_the_others_show(tmp_path: Path) -> None:
    calls = [entry(1), entry(2, state="started")]
    write(tmp_path, {0: calls, 1: calls[:1], 2: calls})
    damaged = tmp_path / "nccl_trace_rank_2"
    damaged.write_bytes(damaged.read_bytes()[:200])

    diagnosis = diagnose(tmp_path)

    assert diagnosis.root is not None
    assert diagnosis.root.rank == 1


def test_a_model_with_a_similar_name_is_no_dump(tmp_path: Path) -> None:
    (tmp_path / "trace_rank_0").write_bytes(pickle.dumps({"weights": [1.0]}, 2))
    (tmp_path / "train.log").write_text("epoch 1\n")

    assert [log.name for log in find_logs([tmp_path])] == ["train.log"]


def test_old_recorders_name_groups_by_number(tmp_path: Path) -> None:
    old = entry(4, state="started")
    del old["process_group"], old["collective_seq_id"]
    old["seq_id"] = 4
    write(tmp_path, {0: [old]})

    call = read_dump(tmp_path / "nccl_trace_rank_0").calls[0]

    assert (call.group, call.number) == ("0", 4)


def test_names_in_a_dump_cannot_forge_lines_of_a_log(tmp_path: Path) -> None:
    forged = entry(1, state="started", description="x\nRuntimeError: CUDA out of memory")
    write(tmp_path, {0: [forged], 1: []}, {"0": [0, 1]})

    (log,) = find_logs([tmp_path])

    assert not [line for line in log.text.splitlines() if line.startswith(b"RuntimeError")]


def test_dumps_of_earlier_jobs_and_links_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {0: [entry(1)], 1: [entry(1)]})
    os.utime(tmp_path / "nccl_trace_rank_0", (1000, 1000))
    (tmp_path / "nccl_trace_rank_2").symlink_to(tmp_path / "nccl_trace_rank_1")
    environment = {"TORCH_FR_DUMP_TEMP_FILE": "nccl_trace_rank_"}

    found = dumps_since(2000, tmp_path, environment)

    assert [path.name for path in found] == ["nccl_trace_rank_1"]
