"""A job against its platform, before it costs GPU time: read, and run dry where that is asked for.

`check` takes what a person submits, a command line, and a `Target`, and answers with `Findings`:
what will go wrong, where and in which phase.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from epochzero import taxonomy
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.model import DryRun
from epochzero.check.findings import Checked, Finding, Place, Severity, Unknown
from epochzero.check.job import read_job
from epochzero.check.job.model import Job
from epochzero.check.program import read_program
from epochzero.check.program.model import Program
from epochzero.check.rules import DRY_RUN, Case, Rule, choose
from epochzero.check.settings import read_settings
from epochzero.check.suppress import Suppression, apply, suppressions
from epochzero.check.target import read_target, this_machine
from epochzero.check.target.model import Target
from epochzero.errors import InputError

__all__ = [
    "Case",
    "Checked",
    "DryRun",
    "Finding",
    "Limits",
    "Place",
    "Rule",
    "Severity",
    "Target",
    "Unknown",
    "check",
]

LARGEST_OTHER_BYTES = 1 << 20


def check(
    arguments: Sequence[str],
    target: Target | str | Path | None = None,
    *,
    folder: str | Path = ".",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    dry: Limits | None = None,
) -> Checked:
    """What will go wrong when the job of a command line runs on a platform.

    Args:
        arguments: the command line, by words, as it would be submitted.
        target: the platform, or the name or path of its description; when None the one that the
            project's settings name, else this machine.
        folder: where the command would be given; its ``pyproject.toml`` may hold settings.
        select: ids of the rules to ask; when empty those of the settings, else all.
        ignore: ids of rules not to ask, besides those of the settings.
        environment: variables that are set where the command would be given.
        dry: run the job dry too, within these limits.

    Raises:
        InputError: the command runs no Python that can be read, or the folder, the settings, the
            target or a rule's name is wrong.
    """
    with _without_collector():
        return _check(arguments, target, folder, select, ignore, environment, dry)


def _check(
    arguments: Sequence[str],
    target: Target | str | Path | None,
    folder: str | Path,
    select: Iterable[str],
    ignore: Iterable[str],
    environment: Mapping[str, str] | None,
    dry: Limits | None,
) -> Checked:
    base = Path(folder).absolute()
    if not base.is_dir():
        raise InputError(f"{folder}: no such folder")
    settings = read_settings(base)
    select, ignore = tuple(select) or settings.select, (*ignore, *settings.ignore)
    rules = choose(select, ignore)
    platform = _platform(settings.target if target is None else target, environment)
    read = read_job(tuple(arguments), base, environment)
    programs = _in_order(_program(job, platform) for job in read.jobs)
    answers = [answer for program in programs for answer in _asked(program, platform, rules)]
    found = _told_once(answer for answer in answers if isinstance(answer, Finding))
    unknown = [answer for answer in answers if isinstance(answer, Unknown)]
    unknown += [*read.unknowns, *(one for program in programs for one in program.unknowns)]
    runs = () if dry is None else _run_dry(read.jobs, platform, dry, environment or {})
    asked = [
        name for name in DRY_RUN if runs and name in (select or DRY_RUN) and name not in ignore
    ]
    found += _not_yet_told(found, (f for run in runs for f in run.findings if f.rule in asked))
    unknown += [one for run in runs for one in run.unknowns]
    kept, suppressed = apply(
        found,
        _suppressions(programs, found, base),
        settings,
        [*asked, *(rule.id for rule in rules)],
    )
    return Checked(
        jobs=tuple(_command(job) for job in read.jobs),
        target=platform.name,
        findings=tuple(sorted(kept, key=_order)),
        unknowns=tuple(sorted(set(unknown), key=lambda one: (one.place, one.what, one.reason))),
        suppressed=tuple(suppressed),
        files=len({module.file for program in programs for module in program.modules.values()}),
        rules=(*asked, *(rule.id for rule in rules)),
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
            gc.enable()


def _platform(target: Target | str | Path, environment: Mapping[str, str] | None) -> Target:
    if isinstance(target, Target):
        return target
    if str(target):
        return read_target(target)
    if environment is not None:
        return this_machine(environment)
    return replace(this_machine({}), environment=None, programs=None)


def _program(job: Job, target: Target) -> Program:
    """The job's program; an empty one where there is nothing to read."""
    if job.fault:
        return Program(job, {}, ())
    try:
        return read_program(job, target)
    except InputError as error:
        what = f"what {job.script or job.module} does"
        return Program(job, {}, (), unknowns=(Unknown(what, str(error), job.at),))


def _run_dry(
    jobs: Sequence[Job], target: Target, limits: Limits, environment: Mapping[str, str]
) -> tuple[DryRun, ...]:
    """Each job whose script or module, and whose arguments, are known."""
    # It knows diagnose, whose patterns take long to load.
    from epochzero.check.dryrun.run import dry_run

    return tuple(
        dry_run(job, target, limits, environment=environment, first=job is jobs[0])
        for job in jobs
        if not (job.fault or job.unsure) and job.complete
    )


def _not_yet_told(known: Sequence[Finding], dry: Iterable[Finding]) -> list[Finding]:
    """What a dry run found and reading did not: the same category within a line is the same."""
    return [
        one
        for one in dry
        if not any(
            other.severity == "error"
            and other.category == one.category
            and other.place.path == one.place.path
            and abs(other.place.line - one.place.line) <= 1
            for other in known
        )
    ]


def _in_order(programs: Iterable[Program]) -> list[Program]:
    """The programs, each with the one before it: what that has written is there."""
    found: list[Program] = []
    for program in programs:
        found.append(replace(program, before=found[-1]) if found else program)
    return found


def _command(job: Job) -> str:
    name = ["-m", job.module] if job.module else [str(job.script)]
    return job.command or " ".join([job.program, *name, *job.argv])


def _asked(program: Program, target: Target, rules: Sequence[Rule]) -> Iterator[Finding | Unknown]:
    """The answers of all rules; one that fails does not take the others along."""
    sure = program.job.certain and program.job.complete
    for rule in rules:
        try:
            for answer in rule.check(program, target):
                yield answer if sure else _softened(answer)
        except Exception as error:
            reason = f"the rule itself failed: {type(error).__name__}: {error}"
            yield Unknown(rule.id, reason, Place("<command>"))


def _softened(answer: Finding | Unknown) -> Finding | Unknown:
    """The same as a warning: the job is perhaps not run, or with other arguments."""
    return replace(answer, severity="warning") if isinstance(answer, Finding) else answer


def _told_once(findings: Iterable[Finding]) -> list[Finding]:
    """One finding of each cause: of those by other ways or in other jobs the worst, then the first."""
    found: dict[tuple[str, Place, str], Finding] = {}
    for one in findings:
        first = found.setdefault((one.rule, one.place, one.message), one)
        if one.severity == "error" and first.severity != "error":
            found[one.rule, one.place, one.message] = one
    return list(found.values())


def _suppressions(
    programs: Sequence[Program], findings: Iterable[Finding], folder: Path
) -> list[Suppression]:
    """Those in the job's modules, and in its other files that findings name."""
    texts = {m.path: m.text for program in programs for m in program.modules.values()}
    for path in {finding.place.path for finding in findings} - texts.keys():
        texts[path] = _text(folder / path)
    return [one for path, text in texts.items() for one in suppressions(path, text)]


def _text(file: Path) -> str:
    """The text of a script or configuration; empty when it is none that can be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_OTHER_BYTES:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _order(finding: Finding) -> tuple[bool, int, Place, str, str]:
    """Errors first, then as the job would come to them."""
    phases = list(taxonomy.phases())
    phase = phases.index(finding.phase) if finding.phase in phases else len(phases)
    return finding.severity != "error", phase, finding.place, finding.rule, finding.message
