"""The job's data, compared with profiles of earlier data.

Differences are reported at the line that reads the data. Only the beginning of each table is read, so that a check stays
fast.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.paths.analysis import analyze_paths
from epochzero.check.paths.platform import beneath
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target
from epochzero.errors import InputError
from epochzero.file_access import exists

RULE_ID = "data-differs"
MOST_RECORDS = 100_000
MOST_FILES = 1000
MOST_TOLD = 20
_CATEGORIES: Mapping[str, str] = {
    "encoding": "unexpected_encoding",
    "not_utf8": "unexpected_encoding",
    "missing_column": "key_not_found",
    "missing_table": "path_not_found",
    "type": "type_mismatch",
}
"""Categories by the kind of difference; all other differences are corrupt data."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set of the job and its profile.

    Attributes:
        path: file or directory, as written; relative to the job's directory.
        profile: file of the profile, likewise.
        place: where the data set is declared.
    """

    path: str
    profile: str
    place: SourceLocation


def compare_data(
    data: Sequence[DataSet], programs: Sequence[Program], target: Target, folder: Path
) -> Iterator[Finding | Unknown]:
    """Compare data sets with their profiles; the worst differences first.

    Args:
        data: the data sets of the job.
        programs: the programs that read them.
        target: the platform.
        folder: directory of the job.

    Raises:
        InputError: a profile cannot be used.
    """
    # Imported here, since it imports numpy.
    from epochzero.data import read_profile, validate

    for each in data:
        known = read_profile(folder / each.profile)
        what = f"whether {each.path} is like {each.profile}"
        place = _reading(folder / each.path, programs, target) or each.place
        if not exists(folder / each.path):
            yield Unknown(what, "the data are not on this machine", place)
            continue
        try:
            found = validate(
                folder / each.path, known, most_files=MOST_FILES, most_records=MOST_RECORDS
            )
        except InputError as error:
            yield Unknown(what, str(error), place)
            continue
        for difference in found.findings[:MOST_TOLD]:
            where = _where(each, difference.file or difference.table, difference.record)
            column = f", column {difference.column!r}" if difference.column else ""
            yield Finding(
                rule=RULE_ID,
                severity=difference.severity,
                category=_CATEGORIES.get(difference.kind, "corrupt_data"),
                phase="preprocessing",
                place=place,
                message=f"{where}{column}: {difference.message} ({difference.kind}).",
                consequence="Code that expects the data of the profile fails or returns wrong results.",
                fix=f"Correct the data, or if the change is intended: epochzero data profile "
                f"{each.path} -o {each.profile}",
            )
        for note in found.notes:
            yield Unknown(what, note, place)


def unknown_if_generated(
    found: Iterable[Finding | Unknown],
    data: Sequence[DataSet],
    programs: Sequence[Program],
    target: Target,
    folder: Path,
) -> Iterator[Finding | Unknown]:
    """Replace findings about missing data that a dry run has generated: whether the real data exist is unknown.

    Args:
        found: findings and unknowns of the rules.
        data: data sets that were generated where they are missing.
        programs: the programs that read them.
        target: the platform.
        folder: directory of the job.
    """
    absent: dict[tuple[str, SourceLocation], DataSet] = {}
    for each in data:
        path = os.path.abspath(folder / each.path)
        for program in programs if not exists(path) else ():
            for problem in analyze_paths(program, target).problems:
                if beneath(problem.path, path) or beneath(path, problem.path):
                    absent[problem.rule, problem.access.call.at.place] = each
    for value in found:
        made = absent.get((value.rule, value.place)) if isinstance(value, Finding) else None
        if made is not None:
            reason = f"they are not on this machine; the dry run generated them from {made.profile}"
            yield Unknown(f"whether {made.path} exists", reason, value.place)
        else:
            yield value


def _reading(path: Path, programs: Sequence[Program], target: Target) -> SourceLocation | None:
    """The first line that reads the data set, or a part of it."""
    wanted = os.path.realpath(path)
    for program in programs:
        for opened in analyze_paths(program, target).opened:
            found = os.path.realpath(opened.local)
            if found == wanted or found.startswith(wanted + os.sep):
                return opened.access.call.at.place
    return None


def _where(data: DataSet, name: str, record: int) -> str:
    """The file and record of a difference, as text for users."""
    inside = name not in ("", os.path.basename(data.path))
    return os.path.join(data.path, name if inside else "").rstrip("/") + (
        f":{record}" if record else ""
    )
