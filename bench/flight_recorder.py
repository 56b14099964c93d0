"""Dumps of jobs that hang, with a known fault: does the reader name the rank, and does torchfrtrace?

Ranks are simulated: each runs its list of collectives over several process groups until none can
continue, and what each has recorded by then is written in the format of the recorder for NCCL
(version 2.4). A fault changes one rank's list. The simulator knows nothing of the reader: a
collective completes when all members of its group are in it.

    python bench/flight_recorder.py [--jobs 105]
"""

from __future__ import annotations

import argparse
import ast
import pickle
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import SEED, save

from epochzero.logs.flight_recorder import first_fault, read_dump

__all__ = ["FAULTS", "Call", "Job", "job_with", "write_dumps"]

FAULTS = (
    "stops",
    "skips_one",
    "one_batch_less",
    "other_operation",
    "other_shape",
    "other_order",
    "no_dump",
)
KEPT_CALLS = 60


@dataclass(frozen=True)
class Call:
    """A collective in the list of a rank; the line stands for its place in the program."""

    group: str
    operation: str
    shape: tuple[int, ...]
    line: int


@dataclass(frozen=True)
class Job:
    """What the ranks of a job call, and who is at fault.

    Attributes:
        groups: process group -> its ranks.
        calls: of each rank.
        culprit: the rank to be named.
        undumped: ranks of which there is no dump.
    """

    groups: Mapping[str, tuple[int, ...]]
    calls: Mapping[int, tuple[Call, ...]]
    culprit: int
    undumped: frozenset[int] = frozenset()


def job_with(fault: str, chance: random.Random) -> Job:
    """A job of data and tensor parallel ranks that hangs since one rank has this fault."""
    while True:
        job = _job_with(fault, chance)
        done = _reached(job)
        # Some swaps of calls are harmless.
        if any(done[rank] < len(calls) for rank, calls in job.calls.items()):
            return job


def _job_with(fault: str, chance: random.Random) -> Job:
    width, replicas = chance.choice(((1, 2), (1, 4), (2, 2), (2, 4), (4, 2), (1, 8)))
    world = width * replicas
    groups = {"0": tuple(range(world))}
    for column in range(width if width > 1 else 0):
        groups[f"dp{column}"] = tuple(range(column, world, width))
    for row in range(replicas if width > 1 else 0):
        groups[f"tp{row}"] = tuple(range(row * width, (row + 1) * width))
    steps = chance.randrange(4, 12)
    calls = {rank: _program(rank, width, steps) for rank in range(world)}
    culprit = chance.randrange(world)
    own = list(calls[culprit])
    at = chance.randrange(len(own) // 2, len(own) - 1)
    if fault in ("stops", "no_dump"):
        own = own[:at]
    elif fault == "one_batch_less":
        own = own[: -(len(own) // steps)]
    elif fault == "skips_one":
        # The barrier between steps: what follows in its group has another operation.
        at = max(index for index, call in enumerate(own[:-1]) if call.operation == "barrier")
        del own[at]
    elif fault == "other_operation":
        own[at] = replace(own[at], operation="broadcast", line=90)
    elif fault == "other_shape":
        at = max(index for index, call in enumerate(own) if call.operation == "all_reduce")
        own[at] = replace(own[at], shape=(own[at].shape[0] + 1,), line=90)
    elif fault == "other_order":
        own[at], own[at + 1] = own[at + 1], own[at]
    undumped = frozenset((culprit,)) if fault == "no_dump" else frozenset[int]()
    return Job(groups, {**calls, culprit: tuple(own)}, culprit, undumped)


def _program(rank: int, width: int, steps: int) -> tuple[Call, ...]:
    calls = []
    for _ in range(steps):
        if width > 1:
            calls.append(Call(f"tp{rank // width}", "all_gather", (16,), 20))
            calls.append(Call(f"tp{rank // width}", "reduce_scatter", (32,), 22))
        calls.append(Call(f"dp{rank % width}" if width > 1 else "0", "all_reduce", (256,), 30))
        calls.append(Call("0", "all_reduce", (1,), 31))
        calls.append(Call("0", "barrier", (1,), 33))
    return tuple(calls)


def _reached(job: Job) -> Mapping[int, int]:
    """How many of its calls each rank completes; it waits in the next one, if there is one."""
    done = dict.fromkeys(job.calls, 0)
    moved = True
    while moved:
        moved = False
        for group, members in job.groups.items():
            waiting = [
                job.calls[rank][done[rank]]
                for rank in members
                if done[rank] < len(job.calls[rank]) and job.calls[rank][done[rank]].group == group
            ]
            if len(waiting) == len(members) and len({(c.operation, c.shape) for c in waiting}) == 1:
                for rank in members:
                    done[rank] += 1
                moved = True
    return done


def write_dumps(job: Job, folder: Path) -> None:
    """The dumps of all ranks that have one."""
    done = _reached(job)
    config = {
        group: {
            "name": group,
            "desc": "default_pg" if group == "0" else group,
            "ranks": str(list(members)),
        }
        for group, members in job.groups.items()
    }
    for rank, calls in job.calls.items():
        if rank in job.undumped:
            continue
        numbers: Counter[str] = Counter()
        entries = []
        for index, call in enumerate(calls[: done[rank] + 1]):
            numbers[call.group] += 1
            state = "completed" if index < done[rank] else "started"
            members = len(job.groups[call.group])
            entries.append(_entry(call, index, numbers[call.group], state, members))
        content = {
            "version": "2.4",
            "pg_config": config,
            "pg_status": {},
            "entries": entries[-KEPT_CALLS:],
        }
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(content, 2))


def _entry(call: Call, index: int, number: int, state: str, members: int) -> dict[str, object]:
    inputs = outputs = list(call.shape)
    if call.operation == "all_gather":
        outputs = [call.shape[0] * members]
    elif call.operation == "reduce_scatter":
        inputs = [call.shape[0] * members]
    return {
        "frames": [{"name": "step", "filename": "/home/u/train.py", "line": call.line}],
        "record_id": index,
        "pg_id": 0,
        "process_group": (call.group, "default_pg" if call.group == "0" else call.group),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": index,
        "profiling_name": f"nccl:{call.operation}",
        "time_created_ns": 1_700_000_000_000_000_000 + index * 1_000_000,
        "input_sizes": [inputs],
        "input_dtypes": ["Float"],
        "output_sizes": [outputs],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": False,
    }


def ours(folder: Path) -> frozenset[int]:
    """The ranks that the reader blames."""
    fault = first_fault([read_dump(path) for path in sorted(folder.iterdir())])
    return frozenset(fault.blamed or fault.missing) if fault else frozenset()


_RANK_SETS = re.compile(
    r"(?:missing ranks|Culprit rank|missed FR dumps from ranks)\D{0,12}(\{[\d, ]+\}|\d+)"
)


def torchfrtrace(folder: Path) -> Sequence[frozenset[int]]:
    """All sets of ranks that torchfrtrace names, in its order."""
    program = Path(sys.executable).with_name("torchfrtrace")
    command = [program, folder, "-p", "nccl_trace_rank_", "--allow-incomplete-ranks"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = []
    for text in _RANK_SETS.findall(ran.stdout + ran.stderr):
        value = ast.literal_eval(text)
        found.append(frozenset(value if isinstance(value, set) else (value,)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=105)
    options = parser.parse_args()
    chance = random.Random(SEED + 1)  # The jobs of SEED were used to write the reader.
    right: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(options.jobs):
        fault = FAULTS[number % len(FAULTS)]
        job = job_with(fault, chance)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_dumps(job, folder)
            truth, named = frozenset((job.culprit,)), torchfrtrace(folder)
            count = right[fault]
            count["jobs"] += 1
            count["epochzero"] += ours(folder) == truth
            count["epochzero_lenient"] += job.culprit in ours(folder)
            count["torchfrtrace_first"] += named[:1] == [truth]
            count["torchfrtrace_lenient"] += any(job.culprit in ranks for ranks in named)
    total = sum(right.values(), Counter())
    for fault, count in [*right.items(), ("all", total)]:
        print(fault, dict(count))
    if options.jobs == parser.get_default("jobs"):
        save("flight_recorder", {"all": total, "by_fault": right})


if __name__ == "__main__":
    main()
