"""Locations of the user's code, as findings of a dry run report them."""

from __future__ import annotations

from pathlib import Path

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import Job


def place_of(path: str, line: int, job: Job, code: str = "") -> SourceLocation:
    """The location as findings report it: relative to the job directory if it is inside."""
    if not path:
        return job.at
    file = Path(path)
    if file.is_relative_to(job.base):
        path = file.relative_to(job.base).as_posix()
    return SourceLocation(path, line, 1 if line else 0, code or _line(file, line))


def _line(file: Path, line: int) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip()[:400] if 0 < line <= len(lines) else ""
