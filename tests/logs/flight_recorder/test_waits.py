"""Which rank the others wait for, in dumps of every way to hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.diagnose import diagnose
from epochzero.logs.flight_recorder import CollectiveFault, first_fault, read_dump
from tests.logs.flight_recorder.entries import entry, write


def fault_in(folder: Path) -> CollectiveFault | None:
    return first_fault([read_dump(path) for path in sorted(folder.iterdir())])


def found(folder: Path) -> CollectiveFault:
    fault = fault_in(folder)
    assert fault is not None
    return fault


@pytest.mark.parametrize("as_json", [False, True])
def test_a_rank_that_did_not_call_a_collective_is_named(tmp_path: Path, as_json: bool) -> None:
    calls = [entry(1), entry(2, state="started", line=20)]
    write(tmp_path, {0: calls, 1: calls[:1], 2: calls}, as_json=as_json)

    fault = found(tmp_path)

    assert (fault.kind, fault.blamed, fault.waiting) == ("absent", (1,), (0, 2))
    assert fault.call.number == 2
    assert [frame.line for frame in fault.call.frames if "train" in frame.file] == [20]
    assert fault.blamed_call is not None
    assert fault.blamed_call.number == 1


def test_a_buffer_that_dropped_its_oldest_calls_makes_no_rank_absent(tmp_path: Path) -> None:
    waiting = entry(9, state="started")
    write(tmp_path, {0: [entry(7), entry(8), waiting], 1: [entry(6), entry(7)], 2: [waiting]})

    assert found(tmp_path).blamed == (1,)


def test_the_operation_that_most_ranks_call_is_the_right_one(tmp_path: Path) -> None:
    right = entry(3, state="started")
    other = entry(3, "nccl:broadcast", state="started", line=44)
    write(tmp_path, {0: [right], 1: [right], 2: [other]})

    fault = found(tmp_path)

    assert (fault.kind, fault.blamed) == ("mismatch", (2,))
    assert fault.blamed_call is not None
    assert fault.blamed_call.operation == "broadcast"


def test_tensors_of_other_sizes_count_where_a_rank_waits(tmp_path: Path) -> None:
    done = {0: [entry(1)], 1: [entry(1, sizes=((8,),))]}
    write(tmp_path, done)
    assert fault_in(tmp_path) is None

    stuck = {
        0: [entry(1, state="started")],
        1: [entry(1, state="started")],
        2: [entry(1, sizes=((8,),), state="started")],
    }
    write(tmp_path, stuck)
    assert (found(tmp_path).kind, found(tmp_path).blamed) == ("mismatch", (2,))


def test_ranks_may_gather_tensors_of_different_sizes(tmp_path: Path) -> None:
    gather = [entry(1, "nccl:all_gather", state="started", sizes=((n,),)) for n in (3, 4)]
    write(tmp_path, dict(enumerate(gather_of for gather_of in ([gather[0]], [gather[1]]))))

    assert found(tmp_path).kind == "stuck"


def test_a_rank_that_waits_in_another_group_is_not_the_end_of_the_chain(tmp_path: Path) -> None:
    """Rank 1 is late in the first group since rank 2 is absent in the second."""
    ranks = {
        0: [entry(1, state="started")],
        1: [entry(1, group="tp", description="tp", state="started", line=30)],
        2: [],
    }
    write(tmp_path, ranks, {"0": [0, 1], "tp": [1, 2]})

    fault = found(tmp_path)

    assert (fault.kind, fault.description, fault.blamed) == ("absent", "tp", (2,))


def test_ranks_that_wait_for_each_other_are_a_cycle(tmp_path: Path) -> None:
    first, second = (entry(1, group=name, description=name, state="started") for name in "ab")
    write(tmp_path, {0: [first], 1: [second]}, {"a": [0, 1], "b": [0, 1]})

    fault = found(tmp_path)

    assert fault.kind == "cycle"
    assert {*fault.blamed, *fault.waiting} == {0, 1}


def test_a_gpu_that_never_reached_the_collective_is_named(tmp_path: Path) -> None:
    states = ("started", "scheduled", "started")
    write(tmp_path, {rank: [entry(5, state=state)] for rank, state in enumerate(states)})

    assert (found(tmp_path).kind, found(tmp_path).blamed) == ("not_started", (1,))


def test_no_rank_is_blamed_for_a_transfer_that_stopped(tmp_path: Path) -> None:
    write(tmp_path, {rank: [entry(5, state="started")] for rank in range(3)})

    assert (found(tmp_path).kind, found(tmp_path).blamed) == ("stuck", ())


def test_a_rank_without_a_dump_is_named_as_missing(tmp_path: Path) -> None:
    write(tmp_path, {rank: [entry(5, state="started")] for rank in (0, 2)}, {"0": [0, 1, 2]})

    fault = found(tmp_path)

    assert (fault.kind, fault.blamed, fault.missing) == ("absent", (), (1,))
    assert "no dump of rank 1" in (diagnose(tmp_path).root or pytest.fail("no root")).text


def test_a_receive_without_its_send_names_the_sender(tmp_path: Path) -> None:
    receive = entry(1, "nccl:recv 1<-0", p2p=True, state="started")
    write(tmp_path, {0: [entry(1)], 1: [entry(1), receive]})

    fault = found(tmp_path)

    assert (fault.blamed, fault.waiting, fault.call.peer) == ((0,), (1,), 0)


def test_a_send_that_is_answered_is_no_fault(tmp_path: Path) -> None:
    send = entry(1, "nccl:send 0->1", p2p=True, state="started")
    receive = entry(1, "nccl:recv 1<-0", p2p=True, state="started")
    write(tmp_path, {0: [send], 1: [receive]})

    assert fault_in(tmp_path) is None


def test_ranks_that_wait_for_nothing_are_no_failure(tmp_path: Path) -> None:
    write(tmp_path, {rank: [entry(1), entry(2)] for rank in range(2)})

    assert fault_in(tmp_path) is None
    assert diagnose(tmp_path).outcome == "no_failure"


def test_the_diagnosis_names_rank_and_line_ahead_of_the_watchdogs(tmp_path: Path) -> None:
    calls = [entry(1), entry(2, state="started", line=20)]
    write(tmp_path, {0: calls, 1: calls[:1]})
    (tmp_path / "train.log").write_text(
        "[rank0]:[E ProcessGroupNCCL.cpp:523] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "
        "600042 milliseconds before timing out.\n"
    )

    diagnosis = diagnose(tmp_path)

    assert diagnosis.signature == "distributed/flight-recorder-absent"
    assert diagnosis.root is not None
    assert diagnosis.root.rank == 1
    assert diagnosis.user_frame is not None
    assert (diagnosis.user_frame.file, diagnosis.user_frame.line) == ("/home/u/train.py", 20)


def test_of_two_ranks_the_one_that_left_the_usual_order_is_named(tmp_path: Path) -> None:
    """Rank 0 skips the barrier of its third step."""
    calls = []
    for step in range(3):
        calls.append(entry(2 * step + 1, line=10))
        calls.append(entry(2 * step + 2, "nccl:barrier", line=12))
    skipped = entry(6, state="started", line=10)
    waiting = entry(6, "nccl:barrier", state="started", line=12)
    write(tmp_path, {0: [*calls[:5], skipped], 1: [*calls[:5], waiting]})

    assert (found(tmp_path).kind, found(tmp_path).blamed) == ("mismatch", (0,))
