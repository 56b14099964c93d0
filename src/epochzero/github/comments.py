"""What was found, as a comment: short, and with nothing of others' text as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from epochzero import taxonomy
from epochzero.check import Finding, SourceLocation
from epochzero.github.review import Review
from epochzero.locate import Item, Ranking
from epochzero.markdown import code, escaped
from epochzero.number_formats import counted, shorten
from epochzero.redact import redact

_LONGEST_COMMENT = 60_000
"""GitHub takes 65,536 characters."""
_MOST_SHOWN = (20, 10, 5, 1)
"""Findings or places; fewer where the comment would be too long."""
_MOST_VIA = 5
_MOST_JOBS = 10
_MOST_REASONS = 2
_LONGEST_LINK = 500
_LONGEST_CODE = 160
_LONGEST_TEXT = 500
_HASH_LENGTH = 10
_OTHERS = "Findings in files that this pull request does not change"


@dataclass(frozen=True, slots=True)
class Links:
    """Where the files of a commit are shown.

    Attributes:
        repository: as ``owner/name``.
        commit: of the lines.
        server: of GitHub.
    """

    repository: str
    commit: str
    server: str = "https://github.com"

    def to(self, path: str, first: int = 0, last: int = 0) -> str:
        """A link to lines of a file, with the place as its text; without one where no file is."""
        lines = f":{first}" if first else ""
        lines += f"-{last}" if last > first else ""
        shown = code(_line(f"{path}{lines}", _LONGEST_CODE))
        if path.startswith("<"):
            return shown
        anchor = f"#L{first}" if first else ""
        anchor += f"-L{last}" if last > first else ""
        file = quote(path.encode("utf-8", "surrogateescape"))
        target = f"{self.server}/{self.repository}/blob/{self.commit}/{file}{anchor}"
        return f"[{shown}]({target})" if len(target) <= _LONGEST_LINK else shown


# -- A pull request ----------------------------------------------------------------------------


def review_comment(found: Review, links: Links) -> str:
    """The Markdown of what the jobs of a pull request would fail of."""
    return _fitting(lambda most: _review(found, links, most))


def _fitting(lines: Callable[[int], Iterator[str]]) -> str:
    """The longest comment that GitHub takes."""
    bodies = ("\n".join(lines(most)) for most in _MOST_SHOWN)
    return next((body for body in bodies if len(body) <= _LONGEST_COMMENT), "")


def _review(found: Review, links: Links, most: int) -> Iterator[str]:
    yield f"### EpochZero: {_headline(found)}"
    yield ""
    shown = found.findings[:most]
    own = [finding for finding in shown if finding.place.path in found.changed]
    others = [f for f in shown if f.place.path not in found.changed]
    for finding in own:
        yield from _finding(finding, links)
    if own and others:
        yield f"\n**{_OTHERS}**\n"
    for finding in others:
        yield from _finding(finding, links)
    if left := len(found.findings) - len(shown):
        yield f"\nand {left} more: `epochzero check` shows them."
    for unchecked in found.not_checked[:most]:
        yield f"- not checked: {_code(unchecked.job)}: {_text(unchecked.reason)}"
    if found.findings or found.not_checked:
        yield ""
    if found.jobs:
        yield (
            f"<sub>Static analysis of {_jobs(found.jobs)} on {_text(found.target)}, at "
            f"{links.commit[:_HASH_LENGTH]}</sub>"
        )
    elif not found.not_checked:
        yield "This pull request changes no launch script. Name the jobs in `[tool.epochzero.github]`."


def _headline(found: Review) -> str:
    if found.findings:
        warnings = len(found.findings) - found.errors
        return f"{counted(found.errors, 'error')}, {counted(warnings, 'warning')} predicted"
    if found.not_checked:
        return f"{counted(len(found.not_checked), 'job')} could not be checked"
    return "all clear" if found.jobs else "nothing was checked"


def _finding(finding: Finding, links: Links) -> Iterator[str]:
    place = finding.place
    yield f"- **{finding.severity}** {_at(place, links)} {code(finding.rule)}{_kind(finding)}"
    if place.code:
        yield f"  {_code(place.code)}"
    yield f"  - Problem: {_text(finding.message)}"
    yield f"  - Effect: {_text(finding.consequence)}"
    yield f"  - Fix: {_text(finding.fix)}"
    if finding.via:
        yield f"  - Via: {', '.join(_at(via, links) for via in finding.via[:_MOST_VIA])}"


def _at(place: SourceLocation, links: Links) -> str:
    return links.to(place.path, place.line)


def _kind(finding: Finding) -> str:
    """Category and phase, where a failure is predicted."""
    if finding.category == "not_a_failure":
        return ""
    category, phase = taxonomy.categories()[finding.category], taxonomy.phases()[finding.phase]
    return f" {category.title}" + (f", in {phase.title}" if finding.phase != "unknown" else "")


def _jobs(jobs: Sequence[str]) -> str:
    shown = ", ".join(map(_code, jobs[:_MOST_JOBS]))
    return f"{shown} and {len(jobs) - _MOST_JOBS} more" if len(jobs) > _MOST_JOBS else shown


# -- An issue ----------------------------------------------------------------------------------


def ranking_comment(found: Ranking, links: Links) -> str:
    """The Markdown of where the bug of an issue may be."""
    return _fitting(lambda most: _ranking(found, links, most))


def _ranking(found: Ranking, links: Links, most: int) -> Iterator[str]:
    if not found.items:
        yield "### EpochZero: no code matches this report"
        yield ""
        yield "Add a traceback, an error message, or the name of a file or function."
        return
    yield "### EpochZero: likely locations of this bug"
    yield ""
    for number, item in enumerate(found.items[:most], 1):
        yield from _item(number, item, links)
    yield ""
    if found.extrinsic is not None and found.extrinsic.is_likely:
        suspect = " ".join([found.extrinsic.suspect.replace("_", " "), found.extrinsic.name])
        addition = f"; suspect: {_text(suspect)}" if suspect.strip() else ""
        chance = f"{found.extrinsic.probability:.0%}"
        yield f"The cause may be outside this code ({chance}){addition}.\n"
    yield (
        f"<sub>An estimate from the text of the report and of {counted(found.searched, 'file')} at "
        f"{links.commit[:_HASH_LENGTH]}; the first location is often wrong</sub>"
    )


def _item(number: int, item: Item, links: Links) -> Iterator[str]:
    unit = f" in {_code(item.unit)}" if item.unit else ""
    yield f"{number}. {links.to(item.path, item.start, item.end)}{unit}"
    for reason in item.reasons[:_MOST_REASONS]:
        yield f"   - {_text(reason.text)}"


# -- Text of others ----------------------------------------------------------------------------


def _line(text: str, length: int) -> str:
    """Text in one line without secrets and control characters."""
    printable = "".join(sign if sign.isprintable() else " " for sign in redact(text))
    whole = " ".join(printable.split())
    return shorten(whole.encode("utf-8", "replace").decode(), length)


def _code(text: str) -> str:
    return code(_line(text, _LONGEST_CODE))


def _text(text: str) -> str:
    return escaped(_line(text, _LONGEST_TEXT))
