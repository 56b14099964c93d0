"""The way of every check: read the jobs, follow their programs, ask the rules, run dry, put it in order."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from epochzero import platform, taxonomy
from epochzero.check.causes import grouped, is_decidable, told_once
from epochzero.check.data import RULE_ID as DATA_DIFFERS
from epochzero.check.data import DataSet, compare_data, unknown_if_generated
from epochzero.check.dryrun.model import DryRun
from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.launch import Submission, read_job
from epochzero.check.launch.model import Job
from epochzero.check.platforms import machines_of, unknown_packages, unknown_systems
from epochzero.check.program.interpreter import read_program
from epochzero.check.program.model import Program
from epochzero.check.request import CheckRequest
from epochzero.check.result import CheckResult
from epochzero.check.rule import Rule
from epochzero.check.rules import DRY_RUN, UNREAD, choose
from epochzero.check.rules.engine import run_rules
from epochzero.check.settings import CheckSettings, read_settings
from epochzero.check.submission import RULE_ID as SUBMISSION_REFUSED
from epochzero.check.submission import refusals
from epochzero.check.suppress import Suppression, apply, suppressions
from epochzero.check.target import read_target
from epochzero.check.target.model import Target
from epochzero.errors import InputError
from epochzero.file_access import open_file

LARGEST_OTHER_BYTES = 1 << 20


def run_check(request: CheckRequest) -> CheckResult:
    """Carries out a check.

    Raises:
        InputError: the command runs no Python that can be read, or the folder, the settings, the
            target, a profile or a rule's name is wrong.
    """
    with _without_collector():
        request = replace(request, folder=request.folder.absolute())
        if not request.folder.is_dir():
            raise InputError(f"{request.folder}: no such directory")
        settings = read_settings(request.folder)
        request = _completed(request, settings)
        rules = choose(request.select, request.ignore)
        target = _target(request)
        read = read_job(request.command, request.folder, request.environment)
        platforms = (
            [target] * len(read.jobs) if target else machines_of(read.jobs, request.environment)
        )
        jobs = [job if target else _with_search_path(job, request.environment) for job in read.jobs]
        programs = _in_order(map(_program, jobs, platforms))
        read_answers = [
            answer
            for program, machine in zip(programs, platforms, strict=True)
            for answer in run_rules(program, machine, rules)
        ]
        runs = _dry_runs(request, programs, platforms, read_answers)
        other = _other_ids(request, is_dry=bool(runs))
        findings, unknowns = _answers(
            request, rules, read_answers, programs, platforms, runs, other
        )
        unknowns += _unknowns(request, target, read, platforms, programs, runs)
        kept, suppressed = apply(
            findings,
            _suppressions(programs, findings, request.folder),
            settings,
            [*other, *(rule.id for rule in rules)],
        )
    return CheckResult(
        jobs=tuple(_command(job) for job in read.jobs),
        target=target.name if target else "this machine",
        findings=tuple(grouped(sorted(kept, key=_order))),
        unknowns=tuple(sorted(set(unknowns), key=lambda u: (u.place, u.what, u.reason))),
        suppressed=tuple(suppressed),
        files=len({module.file for program in programs for module in program.modules.values()}),
        rules=(*other, *(rule.id for rule in rules)),
        dry=runs,
    )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Trees are made of millions of objects, none of them garbage; looking for it doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # All that was made counts as old, or the next look at what is young goes through it.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _completed(request: CheckRequest, settings: CheckSettings) -> CheckRequest:
    """The request, with the project's settings where it leaves a choice."""
    data = request.data or settings.data
    if request.synthesize and not data:
        raise InputError("--synthesize requires data sets: name their paths and profiles")
    return replace(
        request,
        target=settings.target if request.target is None else request.target,
        select=request.select or settings.select,
        ignore=(*request.ignore, *settings.ignore),
        data=data,
    )


def _target(request: CheckRequest) -> Target | None:
    """The target that is given; None for this machine."""
    if isinstance(request.target, Target):
        return request.target
    return read_target(request.target) if request.target and str(request.target) else None


def _with_search_path(job: Job, environment: Mapping[str, str] | None) -> Job:
    """A job of this machine inherits PYTHONPATH from the shell, in which its own modules may be."""
    if job.container or not (path := (environment or {}).get("PYTHONPATH")):
        return job
    return replace(job, environment={"PYTHONPATH": path, **job.environment})


def _program(job: Job, target: Target) -> Program:
    """The job's program; an empty one where there is nothing to read."""
    if not job.is_program:
        return Program(job, {}, ())
    try:
        return read_program(job, target)
    except InputError as error:
        what = f"what {job.script or job.module} does"
        return Program(job, {}, (), unknowns=(Unknown(what, str(error), job.at),))


def _in_order(programs: Iterable[Program]) -> list[Program]:
    """The programs, each with the one before it, whose files it finds."""
    found: list[Program] = []
    for program in programs:
        found.append(replace(program, before=found[-1]) if found else program)
    return found


def _dry_runs(
    request: CheckRequest,
    programs: Sequence[Program],
    platforms: Sequence[Target],
    answers: Sequence[Finding | Unknown],
) -> tuple[DryRun, ...]:
    if request.dry is None:
        return ()
    # It imports diagnose, which a check that only reads does not need.
    if platform.NAME == "Windows":
        raise InputError("a dry run does not work on Windows: use WSL, or check without --dry")
    from epochzero.check.dryrun.jobs import dry_run_all

    claims = [
        answer.place for answer in answers if isinstance(answer, Finding) and is_decidable(answer)
    ]
    return dry_run_all(request, request.dry, programs, platforms, _generated(request), claims)


def _generated(request: CheckRequest) -> Sequence[DataSet]:
    """The data sets that the dry run generates."""
    return request.data if request.synthesize else ()


def _other_ids(request: CheckRequest, *, is_dry: bool) -> list[str]:
    """The ids asked for of findings that come from dry runs, data and suppressions, not from rules."""
    done = {
        **dict.fromkeys(DRY_RUN, is_dry),
        DATA_DIFFERS: bool(request.data),
        SUBMISSION_REFUSED: request.ask_scheduler,
    }
    chosen = request.select or UNREAD
    return [
        name
        for name in UNREAD
        if name in chosen and name not in request.ignore and done.get(name, True)
    ]


def _answers(
    request: CheckRequest,
    rules: Sequence[Rule],
    read: Sequence[Finding | Unknown],
    programs: Sequence[Program],
    platforms: Sequence[Target],
    runs: Sequence[DryRun],
    other: Sequence[str],
) -> tuple[list[Finding], list[Unknown]]:
    """What rules, data and dry runs find, each cause once, and what the rules could not decide."""
    answers = list(read)
    if runs and (generated := _generated(request)):
        answers = list(
            unknown_if_generated(answers, generated, programs, platforms[0], request.folder)
        )
    if DATA_DIFFERS in other:
        answers += compare_data(request.data, programs, platforms[0], request.folder)
    if SUBMISSION_REFUSED in other:
        answers += refusals(request.command, request.folder, request.environment or {})
    findings = told_once(
        (answer for answer in answers if isinstance(answer, Finding)),
        (finding for run in runs for finding in run.findings if finding.rule in other),
        {rule.id for rule in rules if rule.general},
        [place for run in runs for place in run.passed],
    )
    return list(findings), [answer for answer in answers if isinstance(answer, Unknown)]


def _unknowns(
    request: CheckRequest,
    target: Target | None,
    read: Submission,
    platforms: Sequence[Target],
    programs: Sequence[Program],
    runs: Sequence[DryRun],
) -> Iterator[Unknown]:
    """What could not be known of the command, the programs, the platform and in the dry runs."""
    yield from read.unknowns
    yield from (unknown for program in programs for unknown in program.unknowns)
    if target is None:
        yield from unknown_packages(read.jobs, platforms)
        yield from unknown_systems(read.jobs, request.environment or {})
    yield from (unknown for run in runs for unknown in run.unknowns)


def _suppressions(
    programs: Sequence[Program], findings: Iterable[Finding], folder: Path
) -> list[Suppression]:
    """Those in the job's modules, and in its other files that findings name."""
    texts = {m.path: m.text for program in programs for m in program.modules.values()}
    for path in {finding.place.path for finding in findings} - texts.keys():
        texts[path] = _text(folder / path)
    return [suppression for path, text in texts.items() for suppression in suppressions(path, text)]


def _text(file: Path) -> str:
    """The text of a script or configuration; empty when it is none that can be read."""
    try:
        with open_file(file) as stream:
            data = stream.read(LARGEST_OTHER_BYTES + 1)
    except (OSError, ValueError):
        return ""
    return "" if len(data) > LARGEST_OTHER_BYTES else data.decode("utf-8", "replace")


def _command(job: Job) -> str:
    name = ["-m", job.module] if job.module else [str(job.script)]
    return job.command or " ".join([job.program, *name, *job.argv])


def _order(finding: Finding) -> tuple[bool, int, SourceLocation, str, str]:
    """Errors first, then as the job would come to them."""
    phases = list(taxonomy.phases())
    phase = phases.index(finding.phase) if finding.phase in phases else len(phases)
    return finding.severity != "error", phase, finding.place, finding.rule, finding.message
