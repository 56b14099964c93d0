"""Links commits to the issues that they fixed, by rules of the literature, each with its certainty.

The rules read closing keywords in messages and merged pull requests (as documented by GitHub), and issue numbers in
messages of fixes (Śliwerski, Zimmermann and Zeller, MSR 2005; Bachmann and Bernstein, 2009). A commit counts only
between the opening of the issue and a month after its closing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from epochzero.code.git import Git
from epochzero.code.words import words
from epochzero.study.importing.issues import Issue

Certainty = Literal["high", "medium", "low"]
CERTAINTIES: Mapping[str, Certainty] = {
    "commit_closes": "high",
    "pull_request_closes": "high",
    "fix_mentions": "medium",
    "words_and_time": "low",
}
"""The rules, most certain first."""
AFTER_END_S = 30 * 86400.0
NEAR_END_S = 2 * 86400.0
LEAST_COMMON_WORDS = 3
_NUMBER = r"(?:(?P<project>[\w.-]+/[\w.-]+)?#|gh-|https?://[\w.-]+/(?P<address>[\w.-]+/[\w.-]+)/issues/)(?P<number>\d{1,7})\b"
_CLOSES = re.compile(
    r"\b(?:close[sd]?|closing|fix(?:e[sd]|ing)?|resolve[sd]?|resolving)\b:?\s*(?:issues?|bugs?)?\s*"
    r"(?P<list>(?:(?:\s|,|&|and|[(\[])*" + re.sub(r"\?P<\w+>", "?:", _NUMBER) + r")+)",
    re.IGNORECASE,
)  # fmt: skip
_MENTIONS = re.compile(_NUMBER, re.IGNORECASE)
_NAMED = re.compile(r"\b(?:issue|bug)s?\s+(?P<number>\d{1,7})\b", re.IGNORECASE)
_FIXES = re.compile(
    r"\b(?:fix(?:e[sd]|ing)?|bugs?|resolv(?:e[sd]?|ing)|close[sd]?|repair|patch|hotfix)\b",
    re.IGNORECASE,
)
_PULL = re.compile(r"^Merge pull request #(?P<merged>\d+)|\(#(?P<squashed>\d+)\)\s*$")


@dataclass(frozen=True, slots=True)
class CandidateCommit:
    """A commit.

    Attributes:
        sha: its hash.
        time: of the commit, in seconds since the epoch.
        parents: number of parents.
        message: complete message.
    """

    sha: str
    time: float
    parents: int
    message: str


@dataclass(frozen=True, slots=True)
class Link:
    """A commit that a rule considers the fix of an issue.

    Attributes:
        issue: its number.
        commit: the fix.
        rule: a key of `CERTAINTIES`.
    """

    issue: int
    commit: CandidateCommit
    rule: str

    @property
    def certainty(self) -> Certainty:
        """Certainty of the rule."""
        return CERTAINTIES[self.rule]


def read_commits(git: Git) -> list[CandidateCommit]:
    """Return the commits reachable from HEAD, latest first.

    Raises:
        InputError: see `Git.run`.
    """
    output = git.run("log", "--format=%H%x00%ct%x00%P%x00%B%x00%x1e", "HEAD").decode(
        "utf-8", "replace"
    )
    fields = (record.strip("\n").split("\0") for record in output.split("\0\x1e"))
    return [
        CandidateCommit(sha, float(time), len(parents.split()), message)
        for sha, time, parents, message in (field for field in fields if len(field) == 4)
    ]


def links(
    issues: Sequence[Issue],
    commits: Sequence[CandidateCommit],
    project: str,
    *,
    loose: bool = False,
) -> dict[int, list[Link]]:
    """Return, for each issue with any, the commits that may have fixed it, most certain first.

    Args:
        issues: issues and pull requests.
        commits: of the repository.
        project: ``owner/name``; issue numbers of other projects are ignored. Empty if unknown.
        loose: also link by common words near the closing of an issue.
    """
    known = {issue.number: issue for issue in issues}
    found: dict[int, dict[str, Link]] = defaultdict(dict)
    rules: list[Iterable[Link]] = [
        _by_words(known, commits, project),
        _by_pulls(known, commits, project),
    ]
    if loose:
        rules.append(_by_time(issues, commits))
    for rule in rules:
        for link in rule:
            issue = known[link.issue]
            if not issue.is_pull and _in_time(issue, link.commit):
                earlier = found[link.issue].get(link.commit.sha)
                if earlier is None or _rank(link) < _rank(earlier):
                    found[link.issue][link.commit.sha] = link
    return {
        number: sorted(
            of_issue.values(), key=lambda link: (_rank(link), _distance(known[number], link))
        )
        for number, of_issue in found.items()
    }


def _by_words(
    issues: Mapping[int, Issue], commits: Iterable[CandidateCommit], project: str
) -> Iterator[Link]:
    """Link messages that close an issue, or mention it and describe a fix."""
    for commit in commits:
        if commit.parents > 1:
            continue
        closed = set(_closed(commit.message, project))
        mentioned = {int(match["number"]) for match in _NAMED.finditer(commit.message)}
        mentioned.update(_numbers(commit.message, project))
        for number in closed & issues.keys():
            yield Link(number, commit, "commit_closes")
        if _FIXES.search(commit.message):
            for number in (mentioned - closed) & issues.keys():
                yield Link(number, commit, "fix_mentions")


def _by_pulls(
    issues: Mapping[int, Issue], commits: Iterable[CandidateCommit], project: str
) -> Iterator[Link]:
    """Link commits that merged a pull request which closes an issue."""
    of_pull: dict[int, CandidateCommit] = {}
    by_sha: dict[str, CandidateCommit] = {}
    for commit in commits:
        by_sha[commit.sha] = commit
        subject = commit.message.partition("\n")[0]
        if match := _PULL.search(subject):
            of_pull.setdefault(int(match["merged"] or match["squashed"]), commit)
    for pull in issues.values():
        commit_of = by_sha.get(pull.merged) or of_pull.get(pull.number)
        if pull.is_pull and commit_of is not None:
            for number in set(_closed(f"{pull.title}\n{pull.body}", project)) & issues.keys():
                yield Link(number, commit_of, "pull_request_closes")


def _by_time(issues: Iterable[Issue], commits: Sequence[CandidateCommit]) -> Iterator[Link]:
    """Link fixes that were committed near the closing of an issue and share enough words with its title."""
    fixes = [
        (commit, set(words(commit.message.partition("\n")[0])))
        for commit in commits
        if commit.parents < 2 and _FIXES.search(commit.message)
    ]
    for issue in issues:
        if issue.is_pull or issue.closed is None:
            continue
        title = set(words(issue.title))
        for commit, subject in fixes:
            near = abs(commit.time - issue.closed) <= NEAR_END_S
            if near and len(title & subject) >= LEAST_COMMON_WORDS:
                yield Link(issue.number, commit, "words_and_time")


def _closed(text: str, project: str) -> Iterator[int]:
    for match in _CLOSES.finditer(text):
        yield from _numbers(match["list"], project)


def _numbers(text: str, project: str) -> Iterator[int]:
    """Yield the issue numbers of this project that a text mentions."""
    for match in _MENTIONS.finditer(text):
        of = match["project"] or match["address"]
        if of is None or _name(of) == _name(project):
            yield int(match["number"])


def _name(project: str) -> str:
    """Return the name without owner: projects change owners more often than namesakes mention each other."""
    return project.rpartition("/")[2].lower()


def _in_time(issue: Issue, commit: CandidateCommit) -> bool:
    begun = issue.opened is None or commit.time >= issue.opened
    return begun and (issue.closed is None or commit.time <= issue.closed + AFTER_END_S)


def _rank(link: Link) -> int:
    return list(CERTAINTIES).index(link.rule)


def _distance(issue: Issue, link: Link) -> float:
    return abs(link.commit.time - issue.closed) if issue.closed is not None else 0.0
