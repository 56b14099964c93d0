"""Markdown, for comments and issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero import taxonomy
from epochzero.cli import layout
from epochzero.cli.diagnosis_labels import consequences, origin, title_of
from epochzero.cli.finding_labels import kind_of, number_of, places_text
from epochzero.cli.formats import OutputFormat
from epochzero.cli.ranking_labels import (
    BUG_TYPES,
    HASH_LENGTH,
    MOST_REASONS,
    is_worth_showing,
    lines_of,
    reranking_text,
    suspicion_text,
)

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking


class _Markdown(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        click.echo(layout.plain("\n".join(_findings(found, folder))))

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        for diagnosis in found:
            click.echo(layout.plain(_diagnosis(diagnosis, top)))

    def ranking(self, found: Ranking, *, explain: bool) -> None:
        click.echo(layout.plain("\n".join(_ranking(found, explain))))


def _findings(found: CheckResult, folder: Path) -> Iterator[str]:
    errors, warnings = number_of(found, "error"), number_of(found, "warning")
    yield f"### {layout.counted(errors, 'error')}, {layout.counted(warnings, 'warning')} predicted"
    yield ""
    for finding in found.findings:
        place = layout.code(layout.one_line(places_text([finding.place], folder)))
        kind = f", {kind_of(finding)}" if kind_of(finding) else ""
        yield f"- **{finding.severity}** {place} {layout.code(finding.rule)}{kind}"
        if finding.place.code:
            yield f"  {layout.code(layout.one_line(layout.shorten(finding.place.code, 160)))}"
        for label, text in (
            ("Problem", finding.message),
            ("Effect", finding.consequence),
            ("Fix", finding.fix),
        ):
            yield f"  - {label}: {layout.escaped(layout.one_line(text))}"
        if finding.via:
            yield f"  - Via: {layout.escaped(layout.one_line(places_text(finding.via, folder)))}"
        if finding.also:
            yield f"  - Also at: {layout.escaped(layout.one_line(places_text(finding.also, folder)))}"
    if found.findings:
        yield ""
    for unknown in found.unknowns:
        place = layout.code(layout.one_line(places_text([unknown.place], folder)))
        yield f"- unknown {place} {layout.escaped(layout.one_line(f'{unknown.what}: {unknown.reason}'))}"
    if found.unknowns:
        yield ""
    yield (
        f"<sub>{layout.escaped(layout.one_line(found.target))} · {layout.counted(found.files, 'file')} · "
        f"{layout.counted(len(found.rules), 'rule')}</sub>"
    )


def _diagnosis(found: Diagnosis, top: int) -> str:
    if not found.is_failure:
        head = "No failure" if found.outcome == "no_failure" else found.title
        return "\n\n".join([f"**{head}.** {found.meaning}", *_notes(found)])
    lines = [f"### {title_of(found)}", "", found.meaning, ""]
    if found.root:
        who = ", ".join([layout.code(f"{found.root.file}:{found.root.line}"), *origin(found.root)])
        lines += [f"**Root** {who}", "", layout.fenced(found.root.text.strip()), ""]
    if found.user_frame:
        frame = found.user_frame
        place = f"{layout.code(f'{frame.file}:{frame.line}')} in {layout.code(frame.function)}"
        code = f": {layout.code(frame.code)}" if frame.code else ""
        lines += [f"**Your code** {place}{code}", ""]
    lines += [f"{number}. {layout.escaped(fix)}" for number, fix in enumerate(found.fixes[:top], 1)]
    lines += ["", f"**Retry** {taxonomy.retries()[found.retry].title}. {found.retry_reason}"]
    if found.cascade:
        lines += ["", "**Then**", ""]
        lines += [f"- {layout.escaped(line)}" for line in consequences(found.cascade, top)]
    lines += [part for note in _notes(found) for part in ("", note)]
    lines += [
        "",
        f"<sub>{found.fingerprint} · {found.signature or found.basis} · "
        f"confidence {found.confidence:.0%}</sub>",
    ]
    return "\n".join(lines)


def _notes(found: Diagnosis) -> list[str]:
    return [f"**Note** {layout.escaped(note)}" for note in found.notes]


def _ranking(found: Ranking, explain: bool) -> Iterator[str]:
    if found.items:
        yield f"### Likely locations of the bug ({found.level}s)"
    else:
        yield "### No code matches the report"
    yield ""
    for number, item in enumerate(found.items, 1):
        unit = f" in {layout.code(layout.one_line(item.unit))}" if item.unit else ""
        code = f": {layout.code(layout.one_line(item.code))}" if item.code else ""
        yield f"{number}. {layout.code(lines_of(item))}{unit}{code}"
        for reason in item.reasons[: MOST_REASONS if explain else 1]:
            yield f"   - {layout.escaped(layout.one_line(reason.text))}"
    if found.items:
        yield ""
    for note in found.notes:
        yield f"**Note** {layout.escaped(note)}\n"
    if found.reranking is not None:
        yield f"**Model** {layout.escaped(reranking_text(found.reranking))}\n"
    if explain and found.bug_type:
        yield f"**Type** {BUG_TYPES.get(found.bug_type, layout.escaped(found.bug_type))}\n"
    if found.extrinsic is not None and is_worth_showing(found.extrinsic, explain):
        yield f"**Elsewhere** {layout.escaped(suspicion_text(found.extrinsic))}\n"
    commit = found.commit[:HASH_LENGTH] or "work tree"
    yield f"<sub>{commit} · {layout.counted(found.searched, 'file')} · method {found.method}</sub>"


FORMAT = _Markdown()
