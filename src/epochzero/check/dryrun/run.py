"""Dry run of a job: with real values on the CPU and, if it uses GPUs, also with simulated ones.

The first sees labels, masks and numbers; the second devices, types, memory and the whole batch. A
failure after a shortened loop is tried again: only a certain failure is an error. Mismatched sizes
must be the same after other numbers of iterations; all other failures must repeat with whole loops.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan, OnRecord, attempt
from epochzero.check.dryrun.contain.model import Exit, Limits
from epochzero.check.dryrun.effects import effects_of
from epochzero.check.dryrun.findings import (
    FAILURES,
    OF_PATHS,
    OUT_OF_TIME,
    DryRunFailure,
    code_deleted,
    failure,
    nan_loss,
)
from epochzero.check.dryrun.gpu_memory import memory_of
from epochzero.check.dryrun.inherited_files import InheritedFiles
from epochzero.check.dryrun.inverse import NumericOption, largest_of, layout_of, smallest_of
from epochzero.check.dryrun.memory.history import PastPeak
from epochzero.check.dryrun.memory.layout import Layout, LayoutMemory
from epochzero.check.dryrun.model import (
    PARTS,
    Assumption,
    DryRun,
    Ending,
    JobPart,
    Mode,
    ProvidedFiles,
)
from epochzero.check.dryrun.parallel_runs import together
from epochzero.check.dryrun.places import place_of
from epochzero.check.dryrun.reconciliation import RunOutcome, agreed
from epochzero.check.dryrun.records import (
    AllocationRecord,
    DifferenceRecord,
    EndRecord,
    ErrorRecord,
    FrameRecord,
    HangRecord,
    NaN,
    PassRecord,
    Record,
    ResumeRecord,
    SiteRecord,
    SkipRecord,
    VisitRecord,
)
from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.launch.model import Job
from epochzero.check.target.model import GPU, Target

SECOND_SHARE = 1 / 3
"""Fraction of the time, if a smaller batch may have to be tried in addition."""
LEAST_S = 1.0
"""Below this time, another attempt is not worthwhile."""
SMALL_BATCH = 2
_OF_SIZES = re.compile(r"(shape|size|dimension|target).*\d|\d.*(shape|size|dimension)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _ModeResult:
    """The result in one mode, from one attempt or two.

    Attributes:
        last: attempt that decides.
        records: records of all attempts.
        certain: whether the result of the last one does not depend on what was skipped.
        ended: how each process ended.
        ran_out: whether the time limit prevented an attempt that would establish certainty.
    """

    last: DryRunAttempt
    records: tuple[Record, ...]
    certain: bool
    ended: tuple[Exit, ...]
    ran_out: bool = False

    @property
    def seconds(self) -> float:
        """Duration."""
        return sum(process.seconds for process in self.ended)


def dry_run(
    job: Job,
    target: Target,
    limits: Limits,
    *,
    environment: Mapping[str, str],
    gpus: Sequence[GPU] = (),
    first: bool = True,
    made: Sequence[ProvidedFiles] = (),
    handed: InheritedFiles | None = None,
    fit: NumericOption | None = None,
    history: Sequence[PastPeak] = (),
    layout: Layout | None = None,
    claims: Sequence[SourceLocation] = (),
    on_record: OnRecord = lambda _: None,
) -> DryRun:
    """Run a job dry and report how far it runs and what would fail.

    Args:
        job: the job; its script must be readable.
        target: the platform.
        limits: limits of the run; its time covers all attempts in a mode. The modes run in parallel.
        environment: environment of the command.
        gpus: simulated GPUs; empty for a job that uses none.
        first: no other job of the submission precedes it.
        made: data that are placed where the job reads its own.
        handed: stores what the job writes, and provides the files of earlier jobs; None for a single
            job.
        fit: option of the job whose largest fitting value is requested.
        history: GPU memory of past runs; those of this job correct the estimate.
        layout: how the job would be divided over GPUs, if its memory is requested.
        claims: lines that rules claim to fail on this machine.
        on_record: called with events as they happen, from more than one thread.
    """
    modes: tuple[Mode, ...] = ("real", "fake") if gpus else ("real",)
    devices = len(target.gpus or ()) or 1
    plans = [
        DryRunPlan(
            mode,
            gpus,
            devices,
            made=(*made, *(handed.so_far(mode) if handed else ())),
            claims=[(str(job.base / claim.path), claim.line) for claim in claims],
        )
        for mode in modes
    ]
    tried = together(
        lambda plan: _tried(job, plan, limits, environment, handed, on_record), plans, len(plans)
    )
    if handed:
        # A job that uses no GPU leaves the same files for those that do.
        handed.take("real", tried[0].last.ended.changes)
        handed.take("fake", tried[-1].last.ended.changes)
    outcomes = [RunOutcome(each.last, _answer(each, job, target, first)) for each in tried]
    last = [result.last for result in tried]
    memory, *reported = memory_of(last, job, target, environment, history)
    deleted = [found for result in last if (found := code_deleted(result.ended, job))]
    answers = [*agreed(outcomes), *_not_a_number(tried, job), *deleted[:1], *reported]
    largest = None
    if fit is not None and memory is not None:
        largest = largest_of(
            job, fit, last, plans[-1], target, limits, environment, on_record, history
        )
    by_layout = None
    if layout is not None and gpus:
        by_layout = layout_of(last, job, layout, gpus[0], target, environment, history)
    if isinstance(by_layout, Unknown):
        answers.append(by_layout)
    records = [record for result in tried for record in result.records]
    return DryRun(
        job=job.command,
        modes=tuple(a.last.plan.mode for a in tried if not a.last.unfit),
        gpus=tuple(gpu.model for gpu in gpus),
        ended=_ending(tried, answers),
        parts=tuple(_parts(records, job)),
        findings=tuple(answer for answer in answers if isinstance(answer, Finding)),
        unknowns=tuple(answer for answer in answers if isinstance(answer, Unknown)),
        assumptions=(*_pretended(gpus, target, job), *_assumptions(records, job)),
        effects=effects_of([end for a in tried for end in a.ended], records, job, plans),
        seconds=max(result.seconds for result in tried),
        memory=memory,
        smallest_gpu=smallest_of(last, job, gpus[0], history) if memory else None,
        passed=_passed(tried[0], job, claims),
        largest=largest,
        layout=by_layout if isinstance(by_layout, LayoutMemory) else None,
    )


# -- One mode ----------------------------------------------------------------------------------


def _tried(
    job: Job,
    plan: DryRunPlan,
    limits: Limits,
    environment: Mapping[str, str],
    handed: InheritedFiles | None,
    on_record: OnRecord,
) -> _ModeResult:
    end = time.monotonic() + limits.seconds

    def within(seconds: float, plan: DryRunPlan) -> DryRunAttempt:
        keep = handed.folder() if handed else None
        return attempt(job, plan, replace(limits, seconds=seconds), environment, on_record, keep)

    once = within(limits.seconds * (1 - SECOND_SHARE * _may_be_too_much(plan)), plan)
    certain = _is_certain(once)
    ended: tuple[Exit, ...] = (once.ended,)
    left = end - time.monotonic()
    if not certain and _may_repeat(once) and left > LEAST_S:
        longer = within(left, replace(plan, often=2, resume=once.resumed is not None))
        ended = (*ended, longer.ended)
        certain = _alike(once, longer)
    next_plan = _next(once, certain)
    if next_plan is None:
        return _ModeResult(once, once.records, certain, ended)
    left = end - time.monotonic()
    if left < LEAST_S:
        return _ModeResult(once, once.records, certain, ended, ran_out=True)
    again = within(left, next_plan)
    ended = (*ended, again.ended)
    if again.ending in ("time", "killed"):
        return _ModeResult(once, once.records, certain, ended, ran_out=again.ending == "time")
    return _ModeResult(again, _both(once, again), not next_plan.batch, ended)


def _may_be_too_much(plan: DryRunPlan) -> bool:
    """Whether the CPU runs code for a GPU, and may need smaller batches."""
    return plan.mode == "real" and bool(plan.gpus)


def _is_certain(run: DryRunAttempt) -> bool:
    """Whether its failure, if there is one, cannot result from shortened loops."""
    if run.hung:
        return not any(shortened_loop.work for shortened_loop in run.of(SkipRecord))
    return run.raised is None or run.raised.certain


def _may_repeat(run: DryRunAttempt) -> bool:
    """Whether the failure is certain if it is the same after other numbers of iterations."""
    raised = run.raised
    if raised is None:
        return run.hung is not None
    if raised.type in OF_PATHS and not _has_saved_everywhere(run):
        return False
    return raised.comparable or bool(_OF_SIZES.search(raised.message))


def _has_saved_everywhere(run: DryRunAttempt) -> bool:
    """Whether each line that saves has run, so that no skipped iteration would write another file."""
    lines = {(r.path, r.line) for r in run.of(VisitRecord) if r.how == "save"}
    return all(
        any(path == site.path and site.line <= line <= site.end for path, line in lines)
        for site in run.of(SiteRecord)
        if site.part == "save"
    )


def _alike(left: DryRunAttempt, right: DryRunAttempt) -> bool:
    """Whether a failure is the same, including sizes, after another number of iterations."""
    if left.hung or right.hung:
        return _waiting(left) == _waiting(right)
    if left.raised is None or right.raised is None:
        return False
    first, second = left.raised, right.raised
    if first.frames != second.frames or first.taken == second.taken:
        return False
    if first.message == second.message:
        return not first.comparable or first.operands == second.operands
    return first.comparable and _grow_alike(first, second)


def _grow_alike(first: ErrorRecord, second: ErrorRecord) -> bool:
    """Whether only the lengths of lists differ, all by as much: lists of unequal length stay unequal."""
    if _NUMBER.sub("", first.message) != _NUMBER.sub("", second.message):
        return False
    growths, length = [], ""
    for name in first.operands.keys() | second.operands.keys():
        sizes = [_LENGTH.fullmatch(error.operands.get(name, "")) for error in (first, second)]
        if sizes[0] and sizes[1]:
            length = sizes[0][1]
            growths.append(int(sizes[1][1]) - int(length))
        elif first.operands.get(name) != second.operands.get(name):
            return False
    # The length of one list, if the error is about it, may be right after all iterations.
    is_of_one = len(growths) == 1 and length in _NUMBER.findall(first.message)
    return len(set(growths)) == 1 and not is_of_one


_NUMBER = re.compile(r"\d+")
_LENGTH = re.compile(r"length (\d{1,18})")


def _waiting(run: DryRunAttempt) -> list[tuple[int, tuple[FrameRecord, ...]]]:
    return [(rank.rank, rank.frames) for rank in run.hung.ranks] if run.hung else []


def _next(once: DryRunAttempt, certain: bool) -> DryRunPlan | None:
    """Additional attempts.

    Whole loops, if an error may result from shortened ones; a small batch, if the CPU is too slow or has
    too little memory for the batch of a GPU.
    """
    if not certain:
        return replace(once.plan, whole=True, resume=once.resumed is not None)
    stepped = any(reached_line.how == "optimizer step" for reached_line in once.of(VisitRecord))
    too_much = once.ending == "time" or once.ended.limit == "memory"
    if too_much and not stepped and _may_be_too_much(once.plan):
        return replace(once.plan, batch=SMALL_BATCH, resume=False)
    return None


def _both(first: DryRunAttempt, again: DryRunAttempt) -> tuple[Record, ...]:
    """The records of two runs; the second alone decides how the job ended."""
    shortened = (SkipRecord,) if again.plan.whole else ()
    told_again = (AllocationRecord, ErrorRecord, HangRecord, EndRecord, ResumeRecord, *shortened)
    kept = [record for record in first.records if not isinstance(record, told_again)]
    return (*kept, *again.records)


def _answer(tried: _ModeResult, job: Job, target: Target, first: bool) -> Finding | Unknown | None:
    """The meaning of the end of a run; None if it completed."""
    run = tried.last
    if run.unfit:
        return Unknown("errors that occur only on a GPU", run.unfit.why, job.at)
    if run.ending == "finished" and run.cut:
        place = place_of(run.cut.path, run.cut.line, job)
        return Unknown("the last iterations of this loop", OUT_OF_TIME, place)
    if run.ending == "finished":
        return Unknown("the rest of the job", _BY_ITSELF, job.at) if run.ended_itself else None
    if run.ending == "time" and run.in_order:
        over = run.of(EndRecord)[-1]
        place = place_of(over.path, over.line, job)
        return Unknown("the code after this line", OUT_OF_TIME, place)
    failed = DryRunFailure(
        run.raised, run.ended, run.plan, tried.certain, tried.ran_out, first, run.resumed, run.hung
    )
    return failure(failed, job, target)


_BY_ITSELF = "the process exited before its script ended, with exit status 0, as with os._exit"


# -- What they report --------------------------------------------------------------------------


def _ending(tried: Sequence[_ModeResult], answers: Iterable[Finding | Unknown]) -> Ending:
    """How the job ended, as one word: ``failed`` for a reported failure, otherwise that of the longest run."""
    found = [answer for answer in answers if isinstance(answer, Finding)]
    if any(finding.rule in FAILURES or finding.severity == "error" for finding in found):
        return "failed"
    farthest: tuple[Ending, ...] = ("finished", "time", "killed")
    last = [result.last for result in tried if not result.last.unfit]
    endings = ["time" if run.ending == "finished" and run.cut else run.ending for run in last]
    # A failure that is caused by something that only the platform has is not a failure of the job.
    return next((word for word in farthest if word in endings), "stopped")


def _not_a_number(tried: Sequence[_ModeResult], job: Job) -> Iterator[Finding]:
    reported = {(r.path, r.line): r for way in tried for r in way.records if isinstance(r, NaN)}
    yield from (nan_loss(number, job) for number in reported.values())


def _parts(records: Sequence[Record], job: Job) -> Iterable[JobPart]:
    reached = [record for record in records if isinstance(record, VisitRecord)]
    sites = {record for record in records if isinstance(record, SiteRecord)}
    for name in PARTS:
        if first := next((r for r in reached if r.how == name), None):
            yield JobPart(name, first.phase, place_of(first.path, first.line, job), reached=True)
        lines = {(r.path, r.line) for r in reached if r.how == name}
        for site in sorted(sites, key=lambda s: (s.path, s.line)):
            spans = range(site.line, site.end + 1)
            if site.part == name and not any(p == site.path and n in spans for p, n in lines):
                place = place_of(site.path, site.line, job)
                yield JobPart(name, "unknown", place, reached=False, condition=site.condition)


def _passed(
    real: _ModeResult, job: Job, claims: Sequence[SourceLocation]
) -> tuple[SourceLocation, ...]:
    """The claimed lines that ran with real values and did not raise later."""
    raised = real.last.raised
    failed = {(frame.path, frame.line) for frame in raised.frames} if raised else set()
    ran = {(r.path, r.line) for r in real.records if isinstance(r, PassRecord)} - failed
    places = {(at.path, at.line) for path, line in ran for at in (place_of(path, line, job),)}
    return tuple(claim for claim in claims if (claim.path, claim.line) in places)


def _pretended(gpus: Sequence[GPU], target: Target, job: Job) -> Iterator[Assumption]:
    if gpus and not target.gpus:
        yield Assumption(
            f"the dry run assumes the GPU {gpus[0].model}; --target sets another", job.at
        )


def _assumptions(records: Sequence[Record], job: Job) -> Iterable[Assumption]:
    reported: dict[tuple[str, str, int], int] = {}
    for record in records:
        if isinstance(record, DifferenceRecord):
            key = (record.what, record.path, record.line)
            reported[key] = max(reported.get(key, 0), record.count)
        elif isinstance(record, SkipRecord):
            total = f" of {record.total}" if record.total else ""
            reported[f"the loop runs only a few{total} iterations", record.path, record.line] = 1
    for (what, path, line), count in reported.items():
        yield Assumption(what, place_of(path, line, job), count)
