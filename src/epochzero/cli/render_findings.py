"""Findings as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero import taxonomy
from epochzero.check.dryrun.memory.units import size_text
from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.result import CheckResult
from epochzero.check.rules import Rule
from epochzero.cli import layout
from epochzero.cli.finding_labels import kind_of, number_of, place_path, places_text

if TYPE_CHECKING:
    from epochzero.check.dryrun.memory.estimate import Memory
    from epochzero.check.dryrun.memory.layout import LayoutMemory
    from epochzero.check.dryrun.memory.surroundings import Range
    from epochzero.check.dryrun.model import DryRun, Effects


SHOWN_UNKNOWNS = 5
SHOWN_SUBJECTS = 3
SHOWN_HOLDERS = 3
SHOWN_PLACES = 8
_COLOUR = {"error": "red", "warning": "yellow"}


def write_rules(rules: Sequence[Rule]) -> None:
    """Print the rules by category."""
    by_category = sorted(rules, key=lambda rule: list(taxonomy.categories()).index(rule.category))
    for category, group in groupby(by_category, key=lambda rule: rule.category):
        click.secho(taxonomy.categories()[category].title, bold=True)
        for rule in group:
            click.echo(f"  {rule.id:<28}{rule.title}")


def lines(found: CheckResult, folder: Path, verbose: bool, seconds: float) -> Iterator[str]:
    """The findings of a check as people read them; see `epochzero.cli.formats.OutputFormat.findings`."""
    for path, group in _by_file(found.findings, folder):
        yield click.style(layout.one_line(path), bold=True)
        for finding in group:
            yield from _finding(finding, folder)
            yield ""
    yield from _unknowns(found.unknowns, folder, verbose)
    for run in found.dry:
        yield from _dry(run, folder, verbose)
    yield _summary(found, seconds)


def _by_file(findings: Iterable[Finding], folder: Path) -> Iterator[tuple[str, list[Finding]]]:
    """Findings by file; the file with the most severe finding first, and so within a file."""
    files: dict[str, list[Finding]] = {}
    for finding in findings:
        files.setdefault(place_path(finding.place, folder), []).append(finding)
    yield from files.items()


def _finding(finding: Finding, folder: Path) -> Iterator[str]:
    severity = click.style(finding.severity, fg=_COLOUR[finding.severity], bold=True)
    place = finding.place
    where = f"{place_path(place, folder)}:{place.line}" if place.line else place_path(place, folder)
    column = f":{place.column}" if place.line and place.column else ""
    kind = kind_of(finding)
    yield f"{layout.one_line(where)}{column}  {severity}  {finding.rule}{f'  {kind}' if kind else ''}"
    if place.code:
        code = layout.one_line(layout.shorten(place.code, 160))
        yield f"{' ' * layout.LABEL_WIDTH}{click.style(code, fg='cyan')}"
    yield layout.wrapped("Problem", layout.one_line(finding.message))
    yield layout.wrapped("Effect", layout.one_line(finding.consequence))
    yield layout.wrapped("Fix", layout.one_line(finding.fix))
    if finding.via:
        yield layout.wrapped("Via", layout.one_line(places_text(finding.via, folder)))
    if finding.also:
        more = len(finding.also) - SHOWN_PLACES
        rest = f" and {more} more" if more > 0 else ""
        places = places_text(finding.also[:SHOWN_PLACES], folder)
        yield layout.wrapped("Also at", layout.one_line(f"{places}{rest}"))


def _unknowns(unknowns: Sequence[Unknown], folder: Path, verbose: bool) -> Iterator[str]:
    if not unknowns:
        return
    yield click.style("UNKNOWN", bold=True)
    causes = _causes(unknowns)
    for reason, of_reason in list(causes.items())[: None if verbose else SHOWN_UNKNOWNS]:
        subjects: dict[str, list[SourceLocation]] = {}
        for unknown in of_reason:
            subjects.setdefault(unknown.what, []).append(unknown.place)
        shown = list(subjects.items())[: None if verbose else SHOWN_SUBJECTS]
        listed = (
            f"{places_text(places if verbose else places[:1], folder)}  {what}"
            for what, places in shown
        )
        rest = 0 if verbose else len(of_reason) - len(shown)
        more = f"; and {layout.counted(rest, 'more place')}" if rest else ""
        yield layout.wrapped("", layout.one_line(f"{'; '.join(listed)}{more}: {reason}"))
    if len(causes) > SHOWN_UNKNOWNS and not verbose:
        yield layout.wrapped(
            "", f"and {len(causes) - SHOWN_UNKNOWNS} more causes (--verbose shows them)"
        )
    yield ""


def _causes(unknowns: Sequence[Unknown]) -> dict[str, list[Unknown]]:
    """What could not be checked, by the reason."""
    causes: dict[str, list[Unknown]] = {}
    for unknown in unknowns:
        causes.setdefault(unknown.reason, []).append(unknown)
    return causes


def _dry(run: DryRun, folder: Path, verbose: bool) -> Iterator[str]:
    """The progress of a dry run, and its differences from the platform."""
    on = f" on a simulated {run.gpus[0]}" if "fake" in run.modes else ""
    yield (
        f"{click.style('DRY RUN', bold=True)}  {layout.one_line(run.job)}{layout.one_line(on)}: {_ENDED[run.ended]}, "
        f"{run.seconds:.0f} s"
    )
    reached = [part.name for part in run.parts if part.reached]
    yield layout.wrapped("Reached", ", ".join(reached) or "no phase of a training job")
    for part in run.parts:
        if not part.reached:
            under = f", under {part.condition}" if part.condition else ""
            yield layout.wrapped(
                "Not reached",
                layout.one_line(f"{part.name}: {places_text([part.place], folder)}{under}"),
            )
    if run.memory is not None:
        yield from _memory(run.memory, folder, verbose)
        yield from _inverse(run)
    if run.layout is not None:
        yield from _divided(run.layout)
    yield from _effects(run.effects)
    for assumption in run.assumptions if verbose else ():
        count = f", {assumption.count} times" if assumption.count > 1 else ""
        yield layout.wrapped(
            "Assumed",
            layout.one_line(f"{places_text([assumption.place], folder)}  {assumption.what}{count}"),
        )
    if run.assumptions and not verbose:
        yield layout.wrapped(
            "Assumed", f"{layout.counted(len(run.assumptions), 'thing')} (--verbose shows them)"
        )
    yield ""


def _memory(memory: Memory, folder: Path, verbose: bool) -> Iterator[str]:
    """The GPU memory that a job uses, and what occupies it."""
    sizes = (
        f"{name} {_range_text(size)}"
        for name, size in (("allocated", memory.allocated), ("reserved", memory.reserved))
    )
    fit = memory.fit
    room = f"{fit.answer} on {fit.gpu.model} with {size_text(fit.gpu.memory_bytes)}"
    yield layout.wrapped("Memory", layout.one_line(f"{', '.join(sizes)}; {room}"))
    kinds = ", ".join(f"{kind} {size_text(size)}" for kind, size in memory.by_kind.items() if size)
    yield layout.wrapped("At peak", layout.one_line(f"{memory.moment}: {kinds}"))
    for holder in memory.holders[: None if verbose else SHOWN_HOLDERS]:
        place = places_text([SourceLocation(holder.site.path, holder.site.line)], folder)
        layer = f" {holder.site.layer}" if holder.site.layer else ""
        yield layout.wrapped(
            "Held by", layout.one_line(f"{place}{layer}: {holder.kind} {size_text(holder.size)}")
        )
    for part in fit.surroundings if verbose else ():
        yield layout.wrapped(
            "In addition", layout.one_line(f"{part.name} {_range_text(part.size)}: {part.source}")
        )
    for text in memory.assumptions if verbose else ():
        yield layout.wrapped("Assumed", layout.one_line(text))


def _inverse(run: DryRun) -> Iterator[str]:
    """The smallest sufficient GPU, and the largest value of an option that fits."""
    if (gpu := run.smallest_gpu) is not None:
        yield layout.wrapped(
            "Sufficient", layout.one_line(f"{gpu.model} with {size_text(gpu.memory_bytes)}")
        )
    if (found := run.largest) is not None:
        tried = ", ".join(
            f"{attempt.value} {'fits' if attempt.fits else 'does not'}" for attempt in found.tried
        )
        largest = "none of the tried values" if found.value is None else f"{found.value}"
        least = "" if found.certain or found.value is None else ", or more"
        yield layout.wrapped(
            "Largest", layout.one_line(f"{found.option} {largest}{least} ({tried})")
        )


def _divided(found: LayoutMemory) -> Iterator[str]:
    """The memory of the fullest rank if the job is divided over GPUs."""
    memory = found.memory
    where = f", fullest in stage {found.stage}" if "pipeline" in found.layout else ""
    kinds = ", ".join(f"{kind} {size_text(size)}" for kind, size in memory.by_kind.items() if size)
    text = (
        f"{found.layout} on {found.gpus} GPUs, each rank{where}: allocated "
        f"{_range_text(memory.allocated)}; {memory.fit.answer}. {memory.moment}: {kinds}"
    )
    yield layout.wrapped("Divided", layout.one_line(text))


def _range_text(size: Range) -> str:
    return f"{size_text(size.likely)} ({size_text(size.low)} to {size_text(size.high)})"


def _effects(effects: Effects) -> Iterator[str]:
    """What a job would have written, deleted and contacted, and where."""
    written = [f"{_size(write.size)} to {write.place}" for write in effects.written]
    lines = (
        ("Writes", written),
        ("Deletes", effects.deleted),
        ("Connects to", effects.addresses),
        ("Starts", effects.programs),
        ("Isolation", [f"{effects.containment}. {effects.leaks}"] if effects.leaks else []),
    )
    for label, parts in lines:
        if parts:
            yield layout.wrapped(label, layout.one_line(", ".join(parts)))


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


_ENDED = {
    "finished": "completed",
    "failed": "failed",
    "stopped": "could not continue in a dry run",
    "time": "reached its time limit",
    "killed": "was killed",
}


def _summary(found: CheckResult, seconds: float) -> str:
    errors, warnings = number_of(found, "error"), number_of(found, "warning")
    if not found.jobs:
        mark = click.style("NOT CHECKED", fg="yellow", bold=True)
    elif errors:
        mark = click.style("WOULD FAIL", fg="red", bold=True)
    elif warnings:
        mark = click.style("WARNINGS", fg="yellow", bold=True)
    else:
        mark = click.style("NOTHING FOUND", fg="green", bold=True)
    parts = [layout.counted(errors, "error"), layout.counted(warnings, "warning")]
    if found.suppressed:
        parts.append(f"{len(found.suppressed)} suppressed")
    parts.append(f"{len(_causes(found.unknowns))} unknown")
    if deleted := {path for run in found.dry for path in run.effects.deleted}:
        more = max(run.effects.deletions for run in found.dry) - len(deleted)
        names = layout.one_line(", ".join(sorted(deleted)))
        parts.append(f"deletes {names}" + (f" and {more:,} more" if more > 0 else ""))
    return (
        f"{mark}  {', '.join(parts)}; {layout.counted(len(found.jobs), 'job')} on {layout.one_line(found.target)}, "
        f"{layout.counted(found.files, 'file')}, {layout.counted(len(found.rules), 'rule')}, {seconds:.1f} s"
    )
