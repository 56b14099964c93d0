"""How findings are named in every output format: their place, their kind, how they are reached."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero import taxonomy

if TYPE_CHECKING:
    from epochzero.check.findings import Finding, SourceLocation
    from epochzero.check.result import CheckResult


def place_path(place: SourceLocation, folder: Path) -> str:
    """The file of a location, relative to the current directory."""
    if is_file(place) and not os.path.isabs(place.path):
        return os.path.normpath(folder / place.path).replace(os.sep, "/")
    return place.path


def is_file(place: SourceLocation) -> bool:
    """Whether a location is in a file, and not in the command line or the target."""
    return not place.path.startswith("<")


def number_of(found: CheckResult, severity: str) -> int:
    """The number of findings of a severity."""
    return sum(finding.severity == severity for finding in found.findings)


def category_title(name: str) -> str:
    """The title of a category; an unknown name as it is."""
    term = taxonomy.categories().get(name)
    return term.title if term else name


def kind_of(finding: Finding) -> str:
    """Category and phase of a finding, if it predicts a failure."""
    if finding.category == "not_a_failure":
        return ""
    phase = "" if finding.phase == "unknown" else f", in {taxonomy.phases()[finding.phase].title}"
    return f"{category_title(finding.category)}{phase}"


def places_text(via: Iterable[SourceLocation], folder: Path) -> str:
    """Locations as text: paths with lines."""
    return ", ".join(
        f"{place_path(place, folder)}:{place.line}" if place.line else place_path(place, folder)
        for place in via
    )
