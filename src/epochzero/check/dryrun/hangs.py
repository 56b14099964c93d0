"""The finding of a job whose ranks wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochzero.check.dryrun.places import place_of
from epochzero.check.dryrun.records import HangRecord, LoopPosition, RankPosition
from epochzero.check.findings import Finding, Severity, SourceLocation
from epochzero.check.launch.model import Job

RULE = "dry-run-hangs"


def hang(hung: HangRecord, job: Job, severity: Severity, doubt: str = "") -> Finding:
    """The finding of a hang, at the line that only some of the ranks reach.

    Args:
        hung: position of each rank.
        job: the job.
        severity: whether it is certain.
        doubt: why it is not certain, as a sentence; empty if it is.
    """
    odd = _odd(hung.ranks)
    place = _place(odd.rank, job)
    others = [rank for rank in hung.ranks if rank is not odd.rank]
    sentences = [f"{_named(odd.rank, place)} waits here for other ranks."]
    sentences += [_told(other, job) for other in others]
    if odd.loop is not None:
        line = place_of(odd.loop.path, odd.loop.line, job)
        sentences.append(
            f"It is in iteration {odd.loop.taken} of the loop at {line.path}:{line.line}, "
            "which another rank has left."
        )
    return Finding(
        rule=RULE,
        severity=severity,
        category="communication_failure",
        phase=odd.rank.phase or "unknown",
        place=place,
        message=" ".join([*sentences, *([doubt] if doubt else [])]),
        consequence="The job hangs until the timeout: Watchdog caught collective operation timeout",
        fix="All ranks must call the same collectives in the same order: give all ranks the same "
        "number of batches, and move collectives out of conditions that are true on some ranks only.",
        via=_via(odd.rank, others, job, place),
    )


@dataclass(frozen=True, slots=True)
class _Odd:
    """The rank that does what others do not, and the loop that only it is in, if that is the reason."""

    rank: RankPosition
    loop: LoopPosition | None = None


def _odd(ranks: Sequence[RankPosition]) -> _Odd:
    waiting = [rank for rank in ranks if rank.frames]
    if not waiting:
        return _Odd(ranks[0])
    for rank_position in waiting:
        if any(_has_passed(other, rank_position) for other in waiting):
            return _Odd(rank_position)
    for rank_position in waiting:
        for loop in rank_position.loops:
            if any((loop.path, loop.line) not in _loops(other) for other in ranks):
                return _Odd(rank_position, loop)
    for rank_position in waiting:
        if any(
            _line(rank_position) not in other.visited and _line(rank_position) != _line(other)
            for other in ranks
        ):
            return _Odd(rank_position)
    lines = [_line(rank) for rank in waiting]
    return _Odd(min(waiting, key=lambda rank: lines.count(_line(rank))))


def _has_passed(other: RankPosition, rank: RankPosition) -> bool:
    """Whether a rank is in a later iteration of a loop and never called what this one waits in."""
    taken = {(loop.path, loop.line): loop.taken for loop in other.loops}
    behind = any(loop.taken < taken.get((loop.path, loop.line), 0) for loop in rank.loops)
    return behind and _line(rank) not in other.visited


def _loops(rank: RankPosition) -> set[tuple[str, int]]:
    return {(loop.path, loop.line) for loop in rank.loops}


def _line(rank: RankPosition) -> str:
    return f"{rank.frames[-1].path}:{rank.frames[-1].line}" if rank.frames else ""


def _place(rank: RankPosition, job: Job) -> SourceLocation:
    if not rank.frames:
        return job.at
    last = rank.frames[-1]
    return place_of(last.path, last.line, job, last.code)


def _named(rank: RankPosition, place: SourceLocation) -> str:
    frame = rank.frames[-1].function if rank.frames else ""
    where = f", in {frame}()," if frame and frame != "<module>" else ""
    return f"Rank {rank.rank}{where}"


def _told(rank: RankPosition, job: Job) -> str:
    if not rank.frames:
        return f"Rank {rank.rank} has exited."
    place = _place(rank, job)
    return f"Rank {rank.rank} waits at {place.path}:{place.line} ({place.code})."


def _via(
    odd: RankPosition, others: Sequence[RankPosition], job: Job, place: SourceLocation
) -> tuple[SourceLocation, ...]:
    """The calls that lead to the line, and the lines where the other ranks wait."""
    frames = [place_of(frame.path, frame.line, job, frame.code) for frame in odd.frames]
    waiting = [_place(other, job) for other in others if other.frames]
    return tuple(dict.fromkeys(frame for frame in (*frames, *waiting) if frame != place))
