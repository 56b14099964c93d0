"""Run a job dry on data that are generated from profiles, where its own data are missing.

The first run uses data like those of the profiles. If the job completes, it runs once more for each
corner case of each data set, with the others unchanged, within the time limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epochzero.check.data import DataSet
from epochzero.check.dryrun.findings import OUT_OF_TIME
from epochzero.check.dryrun.model import Assumption, DryRun, ProvidedFiles
from epochzero.check.dryrun.parallel_runs import together
from epochzero.check.findings import Finding, Unknown
from epochzero.data import CORNERS, REGULAR, Profile, read_profile, synthesize
from epochzero.data.formats import format_of
from epochzero.scratch import scratch_directory

RECORDS = 300
WORKERS = 2
_OF_CODE = ("library_not_found", "not_implemented", "syntax_error", "undefined_variable")
"""Categories of failures that other data would not prevent."""

Run = Callable[[Sequence[ProvidedFiles], bool], DryRun]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One data set in one of its corner cases."""

    data: DataSet
    case: str

    def __str__(self) -> str:
        return f"{self.data.path} generated as {self.case} ({CORNERS[self.case]})"


def over_made_data(run: Run, data: Sequence[DataSet], folder: Path, seconds: float) -> DryRun:
    """Run a job on generated data and report what fails, and in which corner cases.

    Args:
        run: runs it with generated data in place; its argument is whether they are regular.
        data: data sets of the job; existing ones are not changed.
        folder: job directory.
        seconds: time limit for all corner cases; a case that has started is completed.

    Raises:
        InputError: a profile cannot be used, or its format needs a package that is missing.
    """
    absent = [each for each in data if not (folder / each.path).exists()]
    if not absent:
        return run((), True)
    with scratch_directory() as scratch:
        made = {each: Path(scratch, str(n)) for n, each in enumerate(absent)}
        written = {
            each: [case.name for case in _written(read_profile(folder / each.profile), place)]
            for each, place in made.items()
        }
        # Each case runs for all data sets before the next case, in case the time is not sufficient.
        trials = [
            _Trial(each, case) for case in CORNERS for each in absent if case in written[each]
        ]
        regular = _told_as_made(run(_placed(made, folder), True), absent)
        if regular.ended != "finished":
            return regular
        end = time.monotonic() + seconds

        def tried(trial: _Trial) -> DryRun | None:
            return run(_placed(made, folder, trial), False) if time.monotonic() < end else None

        results = together(tried, trials, workers=min(WORKERS, os.cpu_count() or 1))
        runs = dict(zip(trials, results, strict=True))
    return replace(
        regular,
        findings=(*regular.findings, *_in_corner_cases(runs, regular)),
        unknowns=(*regular.unknowns, *_not_tried(runs)),
        seconds=regular.seconds + sum(dry_run.seconds for dry_run in runs.values() if dry_run),
    )


def _written(known: Profile, folder: Path) -> Sequence[Path]:
    records = max((table.records for table in known.tables), default=0)
    return synthesize(known, folder, count=max(1, min(RECORDS, records)))


def _placed(
    made: Mapping[DataSet, Path], folder: Path, trial: _Trial | None = None
) -> Sequence[ProvidedFiles]:
    """All data sets where the job reads them; one of them in its corner case."""
    placed = []
    for data, cases in made.items():
        source = cases / (trial.case if trial and trial.data == data else REGULAR)
        if format_of(Path(data.path)) is not None:
            source = next(file for file in sorted(source.rglob("*")) if file.is_file())
        placed.append(ProvidedFiles(str(source), os.path.abspath(folder / data.path)))
    return placed


# -- What it says ------------------------------------------------------------------------------


def _told_as_made(run: DryRun, absent: Sequence[DataSet]) -> DryRun:
    """The run on regular data: a finding that may result from generated data is a warning."""
    assumed = [
        Assumption(f"{each.path} is generated from {each.profile}", each.place) for each in absent
    ]
    return replace(
        run,
        findings=tuple(f if f.category in _OF_CODE else _softened(f) for f in run.findings),
        assumptions=(*assumed, *run.assumptions),
    )


def _softened(finding: Finding) -> Finding:
    message = f"{finding.message} The data were generated from a profile, which may be the cause."
    return replace(finding, severity="warning", message=message)


def _in_corner_cases(runs: Mapping[_Trial, DryRun | None], regular: DryRun) -> Iterator[Finding]:
    """Failures that do not occur with regular data: one warning per cause, which lists all its cases."""
    known = {(finding.rule, finding.place) for finding in regular.findings}
    found: dict[object, tuple[Finding, list[_Trial]]] = {}
    for trial, run in runs.items():
        for finding in run.findings if run else ():
            if (finding.rule, finding.place) not in known:
                cause = (finding.rule, finding.category, finding.place)
                found.setdefault(cause, (finding, []))[1].append(trial)
    for finding, trials in found.values():
        cases = "; ".join(map(str, trials))
        yield replace(finding, severity="warning", message=f"With {cases}: {finding.message}")


def _not_tried(runs: Mapping[_Trial, DryRun | None]) -> Iterator[Unknown]:
    """For each data set, the cases for which the time was not sufficient."""
    cases: dict[DataSet, list[str]] = {}
    for trial, run in runs.items():
        if run is None or run.ended == "time":
            cases.setdefault(trial.data, []).append(trial.case)
    for data, names in cases.items():
        what = f"{data.path} generated as {', '.join(names)}"
        yield Unknown(what, OUT_OF_TIME, data.place)
