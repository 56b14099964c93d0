"""Runs the ranks of a distributed job as processes, as its launcher does.

Each rank is forked from a process that has already imported torch, and runs the script itself. This
process reads the records of all ranks, forwards what belongs into the report, and stops the ranks as
soon as one has failed or all of them wait for each other.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from epochzero.check.dryrun.child.emit import RecordPipe

GRACE_S = 1.0
"""After the first failure, for failures of the other ranks that have the same cause."""
HANG_S = 4.0
"""For so long all ranks must wait; each of them reports that it waits after a second. On a busy machine the threads that
connect ranks can need seconds in which all main threads wait."""
POLL_S = 0.05
MOST_RANKS = 4
"""Ranks of a larger world are represented by the first, the second and the last."""
VARIABLES = {
    # As torchrun sets it; the ranks share the processors of this machine.
    "OMP_NUM_THREADS": "1",
    # Parameters without a gradient are then reported by name. More detail crashes torch 2.13.
    "TORCH_DISTRIBUTED_DEBUG": "INFO",
    "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
}
"""Variables that the dry run sets for several ranks unless the command sets them."""
_PEER = re.compile(
    r"[Cc]onnection (was )?(closed|reset|refused|timed out)|Broken pipe|by peer|monitoredBarrier"
    r"|failed to pass|recvValue failed|sendBytes failed"
)
"""How gloo and the store report that another rank has exited."""
_MISMATCH = re.compile("Mismatch between collectives of the ranks")
_UNEQUAL = re.compile("the tensors of the ranks differ in size or type")
"""Of the same collective; at different lines of the job it is by chance the same one."""
_OF_ALL_RANKS = frozenset({"nan", "network", "spawned", "deleted"})
"""Records that count from whichever rank they come; of most others one rank tells enough."""


class LaunchesRanks(BaseException):
    """The script would start ranks itself; not an error of the job.

    Attributes:
        count: how many, on one machine.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def running(count: int) -> Sequence[int]:
    """The ranks of a world that run as processes."""
    return range(count) if count <= MOST_RANKS else [0, 1, count - 1]


class DryRunRank:
    """A process of the job.

    Attributes:
        number: its rank.
        raised: the record of the error that ended it.
        ended: the record of its regular end.
        waiting: where it waits for other ranks, and since when; None while it runs.
        status: wait status of the process; None while it runs.
    """

    def __init__(self, number: int, process: int, pipe: int) -> None:
        self.number = number
        self.process = process
        self.pipe = pipe
        self.raised: dict[str, Any] | None = None
        self.ended: dict[str, Any] | None = None
        self.onward: dict[str, Any] | None = None
        self.waiting: dict[str, Any] | None = None
        self.waits_since = 0.0
        self.status: int | None = None
        self._rest = b""

    def lines(self) -> list[dict[str, Any]]:
        """The records that have arrived."""
        try:
            data = os.read(self.pipe, 1 << 16)
        except BlockingIOError:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    @property
    def failed(self) -> bool:
        """Whether it raised an error, was killed, or exited with an error status."""
        return self.raised is not None or bool(self.status)

    def position(self) -> dict[str, Any]:
        """Where it waits or raised its error, as the record of a hang has it."""
        if self.raised is not None:
            return {**self.raised, "frames": self.raised["own"], "rank": self.number}
        return {**(self.waiting or self.ended or {}), "rank": self.number}


def run_ranks(
    numbers: Sequence[int],
    environments: Mapping[int, Mapping[str, str]],
    body: Callable[[int], int],
    records: RecordPipe,
) -> tuple[int, dict[str, Any] | None]:
    """Run all ranks to their end.

    Args:
        numbers: ranks to run.
        environments: variables of each rank.
        body: runs in the process of a rank; returns its exit status.
        records: of this process; in that of a rank they go to this process.

    Returns:
        The exit status of the job, and how it would resume from its checkpoint, if it can.
    """
    ranks = [_started(number, environments.get(number, {}), body, records) for number in numbers]
    _Supervision(ranks, records).run()
    return _reported(ranks, records)


def _started(
    number: int, environment: Mapping[str, str], body: Callable[[int], int], records: RecordPipe
) -> DryRunRank:
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.close(reading)
        os.environ.update(environment)
        records.move_to(writing)
        faulthandler.enable()
        status = body(number)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)
    os.close(writing)
    os.set_blocking(reading, False)
    return DryRunRank(number, process, reading)


class _Supervision:
    """Reads what the ranks report until all have ended.

    Attributes:
        ranks: all of them.
        hung: whether they were stopped because all of them waited.
    """

    def __init__(self, ranks: Sequence[DryRunRank], records: RecordPipe) -> None:
        self.ranks = ranks
        self._records = records
        self._told: set[str] = set()
        self._failed_at: float | None = None

    def run(self) -> None:
        """Wait for all ranks; stop them when one has failed or when all wait."""
        with selectors.DefaultSelector() as selector:
            for rank in self.ranks:
                selector.register(rank.pipe, selectors.EVENT_READ, rank)
            while any(rank.status is None for rank in self.ranks):
                for key, _ in selector.select(POLL_S):
                    for record in key.data.lines():
                        self._take(key.data, record)
                for rank in self.ranks:
                    self._reap(rank, selector)
                if self._is_over():
                    self._stop()

    def _reap(self, rank: DryRunRank, selector: selectors.BaseSelector) -> None:
        if rank.status is None:
            process, status = os.waitpid(rank.process, os.WNOHANG)
            if process:
                # What it wrote before its end is in the pipe.
                for record in rank.lines():
                    self._take(rank, record)
                selector.unregister(rank.pipe)
                os.close(rank.pipe)
                rank.status = os.waitstatus_to_exitcode(status)

    def _take(self, rank: DryRunRank, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "waiting":
            rank.waiting, rank.waits_since = record, time.monotonic()
        elif kind == "moving":
            rank.waiting = None
        elif kind in ("raised", "ended", "onward"):
            setattr(rank, kind, record)
        elif rank.number == self.ranks[0].number or kind in _OF_ALL_RANKS:
            text = json.dumps(record)
            if rank is self.ranks[0] or text not in self._told:
                self._told.add(text)
                self._records.emit(**record)

    def _is_over(self) -> bool:
        now = time.monotonic()
        if any(rank.failed for rank in self.ranks):
            self._failed_at = self._failed_at or now
            return now - self._failed_at > GRACE_S
        running = [rank for rank in self.ranks if rank.status is None]
        return bool(running) and all(
            rank.waiting is not None and now - rank.waits_since > HANG_S for rank in running
        )

    def _stop(self) -> None:
        for rank in self.ranks:
            if rank.status is None:
                with suppress(ProcessLookupError):
                    os.kill(rank.process, signal.SIGKILL)
                os.waitpid(rank.process, 0)
                rank.status = 0


# -- What it means for the job -----------------------------------------------------------------


def _reported(
    ranks: Sequence[DryRunRank], records: RecordPipe
) -> tuple[int, dict[str, Any] | None]:
    """Write the record of the end of the job, which is that of the rank that decides it."""
    errors = [rank for rank in ranks if rank.raised]
    at_once = len({_user_line(rank) for rank in errors if _UNEQUAL.search(_message(rank))}) < 2
    causes = [rank for rank in errors if not _is_consequence(rank, at_once)]
    if causes:
        first = min(causes, key=lambda rank: rank.raised["at"] if rank.raised else 0.0)
        assert first.raised is not None
        records.emit(**{**first.raised, "rank": first.number})
        return 1, None
    if crashed := next((rank for rank in ranks if (rank.status or 0) < 0), None):
        _die_as(crashed)
    if errors or any(rank.waiting and rank.ended is None for rank in ranks):
        records.emit("hung", ranks=[rank.position() for rank in ranks])
        return 1, None
    ended = [rank.ended for rank in ranks if rank.ended]
    # The first that the time limit stopped, else any.
    for over in sorted(ended, key=lambda record: bool(record["why"] != "time"))[:1]:
        records.emit(**over)
    status = next((rank.status for rank in ranks if rank.status), 0)
    return status or 0, ranks[0].onward


def _is_consequence(rank: DryRunRank, at_once: bool) -> bool:
    """Whether its error only shows that another rank has exited or does something else.

    Tensors that differ are an error of their own if all ranks call the collective at the same line.
    """
    message = _message(rank)
    return any(reason.search(message) for reason in (_PEER, _MISMATCH)) or bool(
        not at_once and _UNEQUAL.search(message)
    )


def _message(rank: DryRunRank) -> str:
    return str(rank.raised["message"]) if rank.raised else ""


def _user_line(rank: DryRunRank) -> tuple[str, int]:
    """The innermost line of the user's code that its error came through."""
    own = rank.raised["own"] if rank.raised else ()
    return (own[-1]["path"], own[-1]["line"]) if own else ("", 0)


def _die_as(rank: DryRunRank) -> None:
    """End this process by the signal that killed a rank."""
    number = -(rank.status or 0)
    faulthandler.disable()
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
