"""The jobs of a pull request, checked as `epochzero.check.check` does: read, and never run."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from epochzero.check import CheckResult, Finding, SourceLocation, Target, check
from epochzero.check.launch import read_job
from epochzero.check.settings import FILE, read_section, read_settings
from epochzero.check.target import read_target
from epochzero.errors import InputError
from epochzero.file_access import FileAccess, confined

_LAUNCH_SCRIPTS = frozenset(
    {".sh", ".bash", ".sbatch", ".slurm", ".pbs", ".lsf", ".bsub", ".job", ".yaml", ".yml"}
)
_MAIN = re.compile(r"""^if\s+__name__\s*==\s*["']__main__["']\s*:""", re.MULTILINE)
_TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$)")
_LARGEST_BYTES = 1 << 20
_NOT_SAID_BY_A_SCRIPT = ("argument-missing", "script-not-executable")
"""Rules about how a script is started, which a changed script alone does not say."""
_NO_TARGET = Target("an unspecified platform")
"""The machine of a workflow is not the one that runs the job."""


@dataclass(frozen=True, slots=True)
class UncheckedJob:
    """A job that could not be checked, and why."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class Review:
    """What the jobs of a pull request would fail of.

    Attributes:
        jobs: the command lines that were checked.
        findings: each once; those in files that the pull request changes first, errors first.
        changed: the files that it changes.
        not_checked: the other command lines.
        target: name of the platform.
    """

    jobs: tuple[str, ...]
    findings: tuple[Finding, ...]
    changed: frozenset[str]
    not_checked: tuple[UncheckedJob, ...]
    target: str

    @property
    def errors(self) -> int:
        """How many findings surely are failures."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def clear(self) -> bool:
        """Whether there is nothing to report."""
        return not (self.findings or self.not_checked)


def review(
    folder: Path, changed: Iterable[str], *, jobs: Sequence[str] = (), target: str = ""
) -> Review:
    """Checks the jobs of a pull request.

    Args:
        folder: the top of its checkout. No file outside is read for the jobs, whatever the pull
            request names or links.
        changed: the files that it changes, as seen from there.
        jobs: command lines; by default those of ``[tool.epochzero.github]`` in ``pyproject.toml``,
            else the launch scripts among the changed files.
        target: the platform; by default that of ``[tool.epochzero.check]``, else one of which
            nothing is known.

    Raises:
        InputError: the settings or the target cannot be used, or a command line is none.
    """
    platform = read_target(target) if target else None
    with confined(FileAccess.within([folder])):
        return _review(folder.resolve(), frozenset(changed), jobs, platform)


def _review(
    folder: Path, changed: frozenset[str], jobs: Sequence[str], target: Target | None
) -> Review:
    platform = target or read_settings(folder).target or _NO_TARGET
    named = [_words(job) for job in jobs or _jobs_of(folder)]
    commands = named or list(_changed_jobs(folder, sorted(changed)))
    left_out = () if named else _NOT_SAID_BY_A_SCRIPT
    answers = {
        shlex.join(command): _checked(command, platform, folder, left_out) for command in commands
    }
    checked = {job: answer for job, answer in answers.items() if isinstance(answer, CheckResult)}
    findings = _once(
        shown
        for result in checked.values()
        for finding in result.findings
        if (shown := _shown(finding, folder))
    )
    return Review(
        jobs=tuple(checked),
        findings=tuple(sorted(findings, key=lambda finding: finding.place.path not in changed)),
        changed=changed,
        not_checked=tuple(
            answer for answer in answers.values() if isinstance(answer, UncheckedJob)
        ),
        target=next((result.target for result in checked.values()), ""),
    )


def _checked(
    command: Sequence[str], target: Target | str, folder: Path, ignore: Sequence[str]
) -> CheckResult | UncheckedJob:
    try:
        found = check(command, target, folder=folder, ignore=ignore)
    except InputError as error:
        return UncheckedJob(shlex.join(command), str(error))
    if found.jobs or found.findings:
        return found
    reasons = (f"{unknown.what}: {unknown.reason}" for unknown in found.unknowns)
    return UncheckedJob(shlex.join(command), "; ".join(reasons))


def _words(job: str) -> list[str]:
    try:
        words = shlex.split(job)
    except ValueError as error:
        raise InputError(f"`{job}` cannot be parsed as a command line: {error}") from error
    if not words:
        raise InputError("a job is an empty command line")
    return words


def _jobs_of(folder: Path) -> list[str]:
    """The jobs that the project's settings name."""
    where = f"{FILE}: [tool.epochzero.github]"
    section = read_section(folder, "github")
    if unknown := section.keys() - {"jobs"}:
        raise InputError(f"{where} unknown key {sorted(unknown)[0]}; the only key is jobs")
    jobs = section.get("jobs", [])
    if not isinstance(jobs, list) or not all(isinstance(job, str) for job in jobs):
        raise InputError(f"{where} jobs must be a list of command lines")
    return jobs


# -- Launch scripts ----------------------------------------------------------------------------


def _changed_jobs(folder: Path, changed: Sequence[str]) -> Iterator[list[str]]:
    """The launch scripts among the changed files, and the programs that none of them starts."""
    paths = [path for path in changed if _may_be_a_job(folder, path)]
    started: set[Path] = set()
    for path in paths:
        if PurePosixPath(path).suffix in _LAUNCH_SCRIPTS:
            try:
                jobs = read_job([path], folder).jobs
            except InputError:
                continue  # A script that starts no Python, a file of YAML that is no manifest.
            started |= {job.script.resolve() for job in jobs if job.script}
            if any(job.script or job.module or job.code for job in jobs):
                yield [path]
    for path in paths:
        file = (folder / path).resolve()
        if path.endswith(".py") and file not in started and _is_program(file):
            yield ["python", path]


def _may_be_a_job(folder: Path, path: str) -> bool:
    hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
    if hidden or path.startswith("-") or _TESTS.search(path):
        return False
    file = folder / path
    return _is_inside(file, folder) and file.is_file() and file.stat().st_size <= _LARGEST_BYTES


def _is_program(file: Path) -> bool:
    return bool(_MAIN.search(file.read_text(encoding="utf-8", errors="replace")))


# -- What may be shown -------------------------------------------------------------------------


def _shown(finding: Finding, folder: Path) -> Finding | None:
    """The finding with places as seen from the checkout; None for what lies outside of it.

    A link in a pull request may lead to any file of the machine, whose lines a finding would show.
    """
    place = _place(finding.place, folder)
    via = tuple(at for location in finding.via if (at := _place(location, folder)))
    return None if place is None else replace(finding, place=place, via=via)


def _place(place: SourceLocation, folder: Path) -> SourceLocation | None:
    if place.path.startswith("<"):
        return place
    if not _is_inside(folder / place.path, folder):
        return None
    path = os.path.normpath(folder / place.path)
    return replace(place, path=PurePosixPath(os.path.relpath(path, folder)).as_posix())


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError):  # A loop of links, or no path at all.
        return False


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each finding once, however many jobs come there; errors first."""
    known: dict[Finding, Finding] = {}
    for finding in findings:
        known.setdefault(replace(finding, via=()), finding)
    yield from sorted(known.values(), key=lambda finding: finding.severity)
