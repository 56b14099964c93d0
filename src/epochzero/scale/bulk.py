"""Diagnoses all logs of SOURCE into RESULT, each exactly once, whatever processes are lost.

A call is a part: a few hundred logs, diagnosed and written by one worker. As many calls run as there are workers, and
the next one is prepared when one has ended, so that nothing accumulates. A part whose worker was lost is repeated log
by log; a log that loses its worker twice on its own gets a row that states this. Several workers read the logs of a
large job, which are joined here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from epochzero.diagnose import Signature
from epochzero.errors import InputError
from epochzero.scale import large_job, work
from epochzero.scale.engines import ProcessEngine, WorkerLostError, opened
from epochzero.scale.results import SCHEMA, Result, ScaleRun, not_diagnosed
from epochzero.scale.sources import Part, jobs_of, parts_of
from epochzero.scale.storage import Storage

ATTEMPTS = 2
LOST = "its diagnosis terminated the worker twice, for example by running out of memory"

OnProgress = Callable[[int], None]


def _nothing(_: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """The result of a run.

    Attributes:
        source, out: addresses of the logs and of their diagnoses.
        logs: number of logs; each has one row.
        outcomes: logs by outcome: ``failed``, ``no_failure``, ``evidence_missing``, ``unknown``, ``not_diagnosed``.
        categories: failures by category, most frequent first.
        parts: number of Parquet files.
        parts_before: number of those that an earlier run had written.
    """

    source: str
    out: str
    logs: int
    outcomes: Mapping[str, int]
    categories: Mapping[str, int]
    parts: int
    parts_before: int

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON data."""
        return {"schema": SCHEMA, **asdict(self)}


def diagnose_all(
    source: str,
    out: str,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    signatures: Iterable[Signature] = (),
    redact: bool = True,
    on_progress: OnProgress = _nothing,
) -> Diagnosed:
    """Diagnose the logs of many jobs into Parquet files; resume an interrupted run.

    Args:
        source: a directory, an archive, a Parquet file with a column ``log``, or ``s3://bucket/prefix``.
        out: a directory, or ``s3://bucket/prefix``, that is new or contains results of the same run.
        engine: ``local`` for processes of this machine, or ``ray``.
        workers: number of workers; by default the number of cores.
        address: of a Ray cluster; if None, one is started on this machine.
        signatures: in addition to the built-in ones.
        redact: hide tokens, keys and passwords.
        on_progress: called with the number of finished logs.

    Raises:
        InputError: SOURCE cannot be read, RESULT cannot be written or contains something else, Ray or pyarrow
            is not installed, or the cluster does not answer.
    """
    # Workers start while SOURCE is inspected.
    at_work = opened(
        engine, workers, address, ready="epochzero.scale.preparation", needs="pyarrow.parquet"
    )
    try:
        logs, place = Storage.at(source), Storage.at(out)
        if f"{place.root}/".startswith(f"{logs.root}/"):
            raise InputError(
                f"{place.name} is inside SOURCE and would be read as part of it; choose another directory"
            )
        run = ScaleRun(logs.address, place.address, tuple(signatures), redact)
        result = Result(run)
        plan = parts_of(jobs_of(logs), run.key)
        # An unusable SOURCE is reported before anything is written.
        first = next(plan)
        before = result.begin()
        parts = _Bulk(result, at_work, before, on_progress).done(chain([first], plan))
    finally:
        at_work.close()
    rows = result.finish(parts)
    reused = len(before.intersection(parts))
    return Diagnosed(
        logs.name, place.name, rows.logs, rows.outcomes, rows.categories, len(parts), reused
    )


@dataclass(frozen=True, slots=True)
class _Call:
    """A call for a worker.

    Attributes:
        part: to which it belongs.
        number: of the piece of the part; None for the whole part.
        function, arguments: what the worker calls.
        attempt: counted from 1.
    """

    part: Part
    number: int | None
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    attempt: int = 1


@dataclass(slots=True)
class _Gathered:
    """Results of the calls for the pieces of a part.

    Attributes:
        wanted: number of pieces.
        pieces: of the part's one large job; empty if each call returns a row.
        given: results by number.
    """

    wanted: int
    pieces: tuple[large_job.Piece, ...] = ()
    given: dict[int, Any] = field(default_factory=dict)


class _Bulk:
    """The calls of a run: those in progress, and the handling of those that end."""

    def __init__(
        self, result: Result, engine: ProcessEngine, before: set[str], on_progress: OnProgress
    ) -> None:
        self._result = result
        self._run = result.run
        self._engine = engine
        self._before = before
        self._on_progress = on_progress
        self._logs = 0
        self._parts: list[str] = []
        self._again: deque[_Call] = deque()
        self._gathered: dict[str, _Gathered] = {}

    def done(self, plan: Iterable[Part]) -> list[str]:
        """Run all parts of the plan; return their names, in order."""
        planned = (call for part in plan for call in self._planned(part))
        under_way: dict[Any, _Call] = {}
        while True:
            while len(under_way) < self._engine.workers and (call := self._next(planned)):
                under_way[self._engine.start(call.function, self._run, *call.arguments)] = call
            if not under_way:
                return self._parts
            # The next part is read and unpacked while the others are processed.
            if not self._again and (ahead := next(planned, None)):
                self._again.append(ahead)
            for handle in self._engine.ended(list(under_way)):
                call = under_way.pop(handle)
                try:
                    self._record(call, self._engine.result(handle))
                except WorkerLostError:
                    self._record_lost(call)

    def _next(self, planned: Iterator[_Call]) -> _Call | None:
        return self._again.popleft() if self._again else next(planned, None)

    def _planned(self, part: Part) -> Iterator[_Call]:
        """Yield the calls for a part; none if its file exists."""
        self._parts.append(part.name)
        if part.name in self._before:
            self._count(part)
        elif len(pieces := large_job.pieces_of(self._run, part.jobs[0])) > 1:
            (job,) = part.jobs
            self._gathered[part.name] = _Gathered(len(pieces), tuple(pieces))
            for number, piece in enumerate(pieces):
                only = job.only(piece.file.name)
                yield _Call(part, number, large_job.read_piece, (only, piece))
        else:
            yield _Call(part, None, work.diagnose_part, (part,))

    def _record(self, call: _Call, given: Any) -> None:
        """Handle a call that succeeded."""
        part = call.part
        if call.number is None:
            self._count(part)
            return
        gathered = self._gathered[part.name]
        gathered.given[call.number] = given
        if len(gathered.given) < gathered.wanted:
            return
        del self._gathered[part.name]
        rows = [gathered.given[number] for number in range(gathered.wanted)]
        if gathered.pieces:
            rows = [large_job.conclude(self._run, part.jobs[0], gathered.pieces, rows)]
        self._result.write(part.name, rows)
        self._count(part)

    def _record_lost(self, call: _Call) -> None:
        """Handle a call whose worker was lost."""
        part = call.part
        if call.number is None:
            self._gathered[part.name] = _Gathered(len(part.jobs))
            self._again.extend(
                _Call(part, number, work.diagnose_job, (job,))
                for number, job in enumerate(part.jobs)
            )
        elif call.attempt < ATTEMPTS:
            self._again.append(replace(call, attempt=call.attempt + 1))
        else:
            job = call.arguments[0]
            large_job = self._gathered[part.name].pieces
            self._record(call, LOST if large_job else not_diagnosed(job.id, LOST))

    def _count(self, part: Part) -> None:
        self._logs += len(part.jobs)
        self._on_progress(self._logs)
