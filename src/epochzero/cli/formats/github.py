"""Workflow commands of GitHub Actions: annotations of lines.

Source: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli import layout
from epochzero.cli.diagnosis_labels import title_of
from epochzero.cli.finding_labels import is_file, kind_of, place_path
from epochzero.cli.formats import OutputFormat

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.check.findings import Finding
    from epochzero.diagnose import Diagnosis


class _GitHub(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        for finding in found.findings:
            click.echo(workflow_command(finding, folder))

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        for diagnosis in found:
            click.echo(layout.plain(_diagnosis(diagnosis)))


def workflow_command(finding: Finding, folder: Path) -> str:
    """Return an annotation (GitHub's documentation, "Workflow commands for GitHub Actions")."""
    place = finding.place
    values = {"title": f"{finding.rule} ({kind_of(finding)})" if kind_of(finding) else finding.rule}
    if is_file(place):
        values |= {"file": place_path(place, folder)}
        values |= {"line": str(place.line)} if place.line else {}
        values |= {"col": str(place.column)} if place.line and place.column else {}
    shown = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in values.items())
    message = _escaped(f"{finding.message} {finding.consequence}\n{finding.fix}", "")
    return layout.plain(f"::{finding.severity} {shown}::{message}")


def _escaped(text: str, also: str) -> str:
    """Percent-encode the special characters of a workflow command; its properties have more than its message."""
    text = text.encode("utf-8", "replace").decode()
    for character in ("%", "\r", "\n", *also):
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _diagnosis(found: Diagnosis) -> str:
    if not found.is_failure:
        return f"::notice title=EpochZero::{_escaped(' '.join([found.meaning, *found.notes]), '')}"
    place = ""
    if found.user_frame and found.user_frame.line:
        file = _escaped(found.user_frame.file, ":,")
        place = f"file={file},line={found.user_frame.line},"
    title = _escaped(title_of(found), ":,")
    text = found.root.text.strip() if found.root else ""
    parts = [text, found.meaning, *found.fixes[:1], *found.notes]
    message = "\n".join(part for part in parts if part)
    return f"::error {place}title={title}::{_escaped(message, '')}"


FORMAT = _GitHub()
