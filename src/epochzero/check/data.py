"""The job's data, compared with profiles of data that went well.

What the project says its data must be like stands in a profile; where they are not, that is told at
the line that reads them. Only the beginning of each table is read, so that a check stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.paths.platform import beneath
from epochzero.check.paths.world import world_of
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
"""Of the failures that differences lead to; all others are exceptional data."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Data of the job, with what they should be like.

    Attributes:
        path: file or folder, as written; relative to the job's folder.
        profile: file of the profile, likewise.
        place: where that is said.
    """

    path: str
    profile: str
    place: SourceLocation


def compare_data(
    data: Sequence[DataSet], programs: Sequence[Program], target: Target, folder: Path
) -> Iterator[Finding | Unknown]:
    """How the data differ from their profiles, worst first for each.

    Args:
        data: of the job.
        programs: which read them.
        target: the platform.
        folder: of the job.

    Raises:
        InputError: a profile cannot be used.
    """
    # It knows numpy, which a check without data does not wait for.
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
                consequence="What reads the data as the profile knows them fails, or is wrong.",
                fix=f"Correct the data, or if they are meant so: epochzero data profile "
                f"{each.path} -o {each.profile}",
            )
        for note in found.notes:
            yield Unknown(what, note, place)


def told_as_made(
    found: Iterable[Finding | Unknown],
    data: Sequence[DataSet],
    programs: Sequence[Program],
    target: Target,
    folder: Path,
) -> Iterator[Finding | Unknown]:
    """Findings, but that data are absent which a dry run has made: whether they are there is unknown.

    Args:
        found: by reading the job, with what is unknown.
        data: that were made where they are absent.
        programs: which read them.
        target: the platform.
        folder: of the job.
    """
    absent: dict[tuple[str, SourceLocation], DataSet] = {}
    for each in data:
        path = os.path.abspath(folder / each.path)
        for program in programs if not exists(path) else ():
            for problem in world_of(program, target).problems:
                if beneath(problem.path, path) or beneath(path, problem.path):
                    absent[problem.rule, problem.access.call.at.place] = each
    for one in found:
        made = absent.get((one.rule, one.place)) if isinstance(one, Finding) else None
        if made is not None:
            reason = f"they are not on this machine; the dry run made them after {made.profile}"
            yield Unknown(f"whether {made.path} are there", reason, one.place)
        else:
            yield one


def _reading(path: Path, programs: Sequence[Program], target: Target) -> SourceLocation | None:
    """The first line that reads the data, or something in them."""
    wanted = os.path.realpath(path)
    for program in programs:
        for opened in world_of(program, target).opened:
            found = os.path.realpath(opened.local)
            if found == wanted or found.startswith(wanted + os.sep):
                return opened.access.call.at.place
    return None


def _where(data: DataSet, name: str, record: int) -> str:
    """The file and record of a difference, as the job would name them."""
    inside = name not in ("", os.path.basename(data.path))
    return os.path.join(data.path, name if inside else "").rstrip("/") + (
        f":{record}" if record else ""
    )
