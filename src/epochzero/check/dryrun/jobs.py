"""The dry runs of all jobs that a command line starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from epochzero.check.data import DataSet
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.gpus import not_pretended, pretended_gpus
from epochzero.check.dryrun.inherited_files import InheritedFiles
from epochzero.check.dryrun.inverse import NumericOption, option_of
from epochzero.check.dryrun.memory.layout import Layout
from epochzero.check.dryrun.model import DryRun, ProvidedFiles
from epochzero.check.dryrun.run import dry_run
from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.program.model import Program
from epochzero.check.request import CheckRequest
from epochzero.check.target.model import Target


def dry_run_all(
    request: CheckRequest,
    limits: Limits,
    programs: Sequence[Program],
    platforms: Sequence[Target],
    data: Sequence[DataSet],
    claims: Sequence[SourceLocation],
) -> tuple[DryRun, ...]:
    """Run each job with a known script or module and known arguments.

    Args:
        request: its environment, history and requested fit apply.
        limits: limits of each dry run.
        programs: programs of the jobs.
        platforms: platform of each program.
        data: data sets to generate first.
        claims: lines that rules claim to fail on this machine.
    """
    runnable = [
        (program, platform)
        for program, platform in zip(programs, platforms, strict=True)
        if program.job.is_program and not program.job.unsure and program.job.complete
    ]
    with InheritedFiles.on() if len(runnable) > 1 else nullcontext() as handed:
        runs = [partial(_dry_run, request, limits, handed, claims, *each) for each in runnable]
        if not data:
            return tuple(run((), True) for run in runs)
        # Generating data needs NumPy, which an installation without extras lacks.
        from epochzero.check.dryrun.synthesize import over_made_data

        return tuple(over_made_data(run, data, request.folder, limits.seconds) for run in runs)


def _dry_run(
    request: CheckRequest,
    limits: Limits,
    handed: InheritedFiles | None,
    claims: Sequence[SourceLocation],
    program: Program,
    platform: Target,
    made: Sequence[ProvidedFiles],
    regular: bool,
) -> DryRun:
    """One dry run; a run over corner cases of the data shares nothing with other jobs."""
    environment = request.environment or {}
    option = option_of(program, request.fit) if request.fit and regular else None
    found = dry_run(
        program.job,
        platform,
        limits,
        environment=environment,
        gpus=pretended_gpus(program, platform, environment),
        first=program.before is None,
        made=made,
        handed=handed if regular else None,
        fit=option if isinstance(option, NumericOption) else None,
        history=request.history,
        layout=Layout.read(request.layout) if request.layout and regular else None,
        claims=claims if platform.here else (),
        on_record=request.on_record,
    )
    unknown_option = (option,) if isinstance(option, Unknown) else ()
    not_simulated = not_pretended(program, platform, environment)
    return replace(found, unknowns=(*found.unknowns, *unknown_option, *not_simulated))
