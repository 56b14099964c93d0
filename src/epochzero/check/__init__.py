"""A job against its platform, before it costs GPU time: read, and run dry where that is asked for.

`check` takes what a person submits, a command line, and a `Target`, and answers with `Findings`:
what will go wrong, where and in which phase.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero import taxonomy
from epochzero.check.budget import Stopped, at_most
from epochzero.check.causes import told_once
from epochzero.check.data import RULE_ID as DATA_DIFFERS
from epochzero.check.data import DataSet, compare_data, told_as_made
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.gpus import not_pretended, pretended_gpus
from epochzero.check.dryrun.memory.history import PastPeak
from epochzero.check.dryrun.model import DryRun, Made
from epochzero.check.findings import Checked, Finding, Place, Severity, Unknown
from epochzero.check.job import read_job
from epochzero.check.job.model import Job
from epochzero.check.program import read_program
from epochzero.check.program.model import Program
from epochzero.check.rules import DRY_RUN, UNREAD, Case, Rule, choose
from epochzero.check.rules.base import CannotTell
from epochzero.check.settings import read_settings
from epochzero.check.submitted import batch_system, is_of_the_system, nodes_of, unknown_nodes
from epochzero.check.suppress import Suppression, apply, suppressions
from epochzero.check.target import (
    Interpreter,
    read_interpreter,
    read_target,
    running,
    this_machine,
    with_interpreter,
)
from epochzero.check.target.model import Target
from epochzero.errors import InputError
from epochzero.file_access import open_file

if TYPE_CHECKING:
    from epochzero.check.dryrun.records import Record

__all__ = [
    "Case",
    "Checked",
    "DataSet",
    "DryRun",
    "Finding",
    "Limits",
    "PastPeak",
    "Place",
    "Rule",
    "Severity",
    "Target",
    "Unknown",
    "check",
]

LARGEST_OTHER_BYTES = 1 << 20
RULE_S, RULES_S = 10.0, 30.0
"""Seconds of processor time that one rule may take, and all of them for one program."""


def check(
    arguments: Sequence[str],
    target: Target | str | Path | None = None,
    *,
    folder: str | Path = ".",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    data: Sequence[DataSet] = (),
    dry: Limits | None = None,
    synthesize: bool = False,
    fit: str = "",
    history: Sequence[PastPeak] = (),
    hear: Callable[[Record], None] = lambda _: None,
) -> Checked:
    """What will go wrong when the job of a command line runs on a platform.

    Args:
        arguments: the command line, by words, as it would be submitted.
        target: the platform, or the name or path of its description; when None the one that the
            project's settings name, else this machine, with the Python that the command would find.
        folder: where the command would be given; its ``pyproject.toml`` may hold settings.
        select: ids of the rules to ask; when empty those of the settings, else all.
        ignore: ids of rules not to ask, besides those of the settings.
        environment: variables that are set where the command would be given.
        data: of the job, to be compared with their profiles; when empty those of the settings.
        dry: run the job dry too, within these limits.
        synthesize: in the dry run, make those of the data that are not there after their profiles,
            and try their corner cases too.
        fit: in the dry run, find the largest value of this option of the job, by its name, with which
            it fits on the target's GPU.
        history: what past runs of jobs took of their GPUs; in the dry run, those of this job correct
            what is estimated for it.
        hear: is told what a dry run's child tells, while it runs, from more than one thread.

    Raises:
        InputError: the command runs no Python that can be read, or the folder, the settings, the
            target, a profile or a rule's name is wrong.
    """
    with _without_collector():
        return _check(
            arguments,
            target,
            folder,
            select,
            ignore,
            environment,
            data,
            dry,
            synthesize,
            fit,
            history,
            hear,
        )


def _check(
    arguments: Sequence[str],
    target: Target | str | Path | None,
    folder: str | Path,
    select: Iterable[str],
    ignore: Iterable[str],
    environment: Mapping[str, str] | None,
    data: Sequence[DataSet],
    dry: Limits | None,
    synthesize: bool,
    fit: str,
    history: Sequence[PastPeak],
    hear: Callable[[Record], None],
) -> Checked:
    base = Path(folder).absolute()
    if not base.is_dir():
        raise InputError(f"{folder}: no such folder")
    settings = read_settings(base)
    select, ignore = tuple(select) or settings.select, (*ignore, *settings.ignore)
    rules = choose(select, ignore)
    named = _named(settings.target if target is None else target)
    read = read_job(tuple(arguments), base, environment)
    platforms = [named] * len(read.jobs) if named else _machines(read.jobs, environment)
    jobs = [replace(job, seconds_per_epoch=settings.seconds_per_epoch) for job in read.jobs]
    programs = _in_order(map(_program, jobs, platforms))
    data = data or settings.data
    if synthesize and not data:
        raise InputError("no data are named that could be made: give their path and profile")
    made = data if synthesize else ()
    runs = (
        ()
        if dry is None
        else _run_dry(programs, platforms, dry, environment or {}, made, base, fit, history, hear)
    )
    unread = [name for name in UNREAD if name in (select or UNREAD) and name not in ignore]
    looked = {**dict.fromkeys(DRY_RUN, bool(runs)), DATA_DIFFERS: bool(data)}
    asked = [name for name in unread if looked.get(name, True)]
    answers = [
        answer
        for program, platform in zip(programs, platforms, strict=True)
        for answer in _asked(program, platform, rules)
    ]
    if runs and made:
        answers = list(told_as_made(answers, made, programs, platforms[0], base))
    if DATA_DIFFERS in asked:
        answers += compare_data(data, programs, platforms[0], base)
    found = told_once(
        (answer for answer in answers if isinstance(answer, Finding)),
        (one for run in runs for one in run.findings if one.rule in asked),
        {rule.id for rule in rules if rule.general},
    )
    unknown = [answer for answer in answers if isinstance(answer, Unknown)]
    unknown += [*read.unknowns, *(one for program in programs for one in program.unknowns)]
    if named is None:
        unknown += _without_packages(read.jobs, platforms)
        unknown += _elsewhere(read.jobs, environment or {})
    unknown += [one for run in runs for one in run.unknowns]
    kept, suppressed = apply(
        found,
        _suppressions(programs, found, base),
        settings,
        [*asked, *(rule.id for rule in rules)],
    )
    return Checked(
        jobs=tuple(_command(job) for job in read.jobs),
        target=named.name if named else "this machine",
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
            if not gc.get_freeze_count():
                # All that was made counts as old, or the next look at what is young goes through it.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _named(target: Target | str | Path) -> Target | None:
    """The target that is given; None for this machine."""
    if isinstance(target, Target):
        return target
    return read_target(target) if str(target) else None


def _machines(jobs: Sequence[Job], environment: Mapping[str, str] | None) -> list[Target]:
    """This machine for each job, or what it tells of a cluster's nodes, with the Python that would run it."""
    found: dict[Interpreter | None, Target] = {}
    for job in jobs:
        interpreter = _interpreter(job, environment)
        if not found:
            machine = this_machine(environment or {}, interpreter=interpreter)
            if environment is None:
                machine = replace(machine, environment=None, programs=None)
            found[interpreter] = machine if interpreter else with_interpreter(machine, None)
        elif interpreter not in found:
            found[interpreter] = with_interpreter(next(iter(found.values())), interpreter)
    machines = []
    for job in jobs:
        machine, system = (
            found[_interpreter(job, environment)],
            batch_system(job, environment or {}),
        )
        machines.append(nodes_of(system, machine) if system else machine)
    return machines


def _interpreter(job: Job, environment: Mapping[str, str] | None) -> Interpreter | None:
    """The Python that would run a job here; the one that runs this where no environment is given."""
    given = environment or {}
    if job.interpreter is None:
        return running() if environment is None and not job.container else None
    if is_of_the_system(job.interpreter) and batch_system(job, given):
        return None
    try:
        found = read_interpreter(job.interpreter, home=given.get("HOME", ""))
    except InputError:
        return None
    told = job.environment.get("PYTHONPATH", given.get("PYTHONPATH")) or ""
    first = [os.path.join(job.folder, folder) for folder in told.split(":") if folder]
    return replace(found, folders=(*first, *found.folders))


def _without_packages(jobs: Sequence[Job], platforms: Sequence[Target]) -> Iterator[Unknown]:
    """The jobs of which it is not known with which packages they run."""
    for job, platform in zip(jobs, platforms, strict=True):
        if job.is_program and platform.distributions is None:
            reason = (
                f"they are those of the image {job.container}; capture a target in it"
                if job.container
                else f"which Python `{job.program}` is cannot be told here; capture a target with it"
            )
            yield Unknown("which packages the job finds", reason, job.at)


def _elsewhere(jobs: Sequence[Job], environment: Mapping[str, str]) -> Iterator[Unknown]:
    """The jobs that do not run on this machine."""
    for job in jobs:
        if job.is_program and (system := batch_system(job, environment)):
            yield unknown_nodes(system, job)


def _program(job: Job, target: Target) -> Program:
    """The job's program; an empty one where there is nothing to read."""
    if not job.is_program:
        return Program(job, {}, ())
    try:
        return read_program(job, target)
    except InputError as error:
        what = f"what {job.script or job.module} does"
        return Program(job, {}, (), unknowns=(Unknown(what, str(error), job.at),))


def _run_dry(
    programs: Sequence[Program],
    platforms: Sequence[Target],
    limits: Limits,
    environment: Mapping[str, str],
    data: Sequence[DataSet],
    folder: Path,
    fit: str,
    history: Sequence[PastPeak],
    hear: Callable[[Record], None],
) -> tuple[DryRun, ...]:
    """Each job whose script or module, and whose arguments, are known."""
    # They know diagnose, whose patterns take long to load.
    from epochzero.check.dryrun.handed import Handed
    from epochzero.check.dryrun.inverse import Option, option_of
    from epochzero.check.dryrun.run import dry_run
    from epochzero.check.dryrun.synthesize import over_made_data

    def run(
        handed: Handed | None,
        program: Program,
        platform: Target,
        made: Sequence[Made],
        regular: bool,
    ) -> DryRun:
        option = option_of(program, fit) if fit and regular else None
        found = dry_run(
            program.job,
            platform,
            limits,
            environment=environment,
            gpus=pretended_gpus(program, platform, environment),
            first=program.before is None,
            made=made,
            handed=handed if regular else None,
            fit=option if isinstance(option, Option) else None,
            history=history,
            hear=hear,
        )
        told = (option,) if isinstance(option, Unknown) else ()
        beyond = not_pretended(program, platform, environment)
        return replace(found, unknowns=(*found.unknowns, *told, *beyond))

    runnable = [
        (program, platform)
        for program, platform in zip(programs, platforms, strict=True)
        if program.job.is_program and not program.job.unsure and program.job.complete
    ]
    with Handed.on() if len(runnable) > 1 else nullcontext() as handed:
        return tuple(
            over_made_data(partial(run, handed, *each), data, folder, limits.seconds)
            for each in runnable
        )


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
    """The answers of all rules; one that fails or runs away does not take the others along."""
    sure = program.job.certain and program.job.complete
    # What is wrong with a script does not depend on whether and how it runs this program.
    own = {problem.place for problem in program.job.problems}
    end = time.process_time() + RULES_S
    with ExitStack() as running:
        for beside in dict.fromkeys(rule.beside for rule in rules if rule.beside is not None):
            running.enter_context(beside(program, target))
        for rule in rules:
            seconds = min(RULE_S, end - time.process_time())
            if seconds <= 0:
                reason = f"not asked: the rules before it took {RULES_S:g} s"
                yield Unknown(rule.id, reason, Place("<command>"))
                continue
            for answer in _answers(rule, program, target, seconds):
                yield answer if sure or answer.place in own else _softened(answer)


def _answers(
    rule: Rule, program: Program, target: Target, seconds: float
) -> list[Finding | Unknown]:
    """What a rule says within so many seconds, and why it says no more."""
    said: list[Finding | Unknown] = []
    try:
        with at_most(seconds):
            for answer in rule.findings(program, target):
                said.append(answer)
        return said
    except Stopped:
        reason = f"stopped after {seconds:.3g} s"
    except CannotTell as error:
        reason = str(error)
    except Exception as error:
        reason = f"the rule itself failed: {type(error).__name__}: {error}"
    return [*said, Unknown(rule.id, reason, Place("<command>"))]


def _softened(answer: Finding | Unknown) -> Finding | Unknown:
    """The same as a warning: the job is perhaps not run, or with other arguments."""
    return replace(answer, severity="warning") if isinstance(answer, Finding) else answer


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
        with open_file(file) as stream:
            data = stream.read(LARGEST_OTHER_BYTES + 1)
    except (OSError, ValueError):
        return ""
    return "" if len(data) > LARGEST_OTHER_BYTES else data.decode("utf-8", "replace")


def _order(finding: Finding) -> tuple[bool, int, Place, str, str]:
    """Errors first, then as the job would come to them."""
    phases = list(taxonomy.phases())
    phase = phases.index(finding.phase) if finding.phase in phases else len(phases)
    return finding.severity != "error", phase, finding.place, finding.rule, finding.message
