"""BLIA: structured files, similar reports, stack traces and recent fixes together.

K. C. Youm, J. Ahn, E. Lee: "Improved Bug Localization Based on Code Change Histories and Bug
Reports", Information and Software Technology 82, 2017 (BLIA 1.5), at file level. Where the paper
leaves room, its authors' public tool (klausyoum/BLIA) decided. The parameters are those that the
tool ships for AspectJ, the one project of the paper for which every part has a weight: ``alpha``
0.3, ``beta`` 0.2, ``k`` 120 days.

    score = (1 - beta) * ((1 - alpha) * N(vsm) + alpha * N(similar) + trace) + beta * commits

and 0 where what ``1 - beta`` weighs is 0, so that recent fixes alone make no file suspicious.

- vsm: the cosines of {class, method, variable, comment} with {summary, description}, comments for a
  half, times BugLocator's boost of long files. The fields are those of
  `epochzero.locate.techniques.bluir`; how rare a word is counts over whole files.
- similar: BugLocator's SimiScore.
- trace: for a file in a stack trace the inverse of its frame's rank from the innermost, 0.1 beyond
  rank 10, and 0.1 for the files that those import (after BRTracer: Wong et al., ICSME 2014).
- commits: over the fixes of a file in the last ``k`` days, ``1 / (1 + exp(12 * d / k))`` each, made
  ``d`` days before the report (after AmaLgam: Wang and Lo, ICPC 2014). They are not scaled to 0..1:
  a file that is fixed every week gains more by them than by anything else.

The tool keeps only the tenth of the files with the highest ``vsm``; here all are ranked. Its weights
mix a field's counts with a file's; here a field's own counts form its vector. Fixes are identified by
`epochzero.code.Change.is_fix`, which knows more words than the tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from epochzero.code import History
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query
from epochzero.locate.techniques.base import Method
from epochzero.locate.techniques.vectors import (
    NAMES,
    asked,
    cosine,
    length_boost,
    scaled,
    vectors_of,
)

ALPHA, BETA, DAYS = 0.3, 0.2, 120.0
COMMENT_WEIGHT = 0.5
RANKED_FRAMES, LOWEST_BOOST = 10, 0.1
STEEPNESS = 12.0
_DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class BLIA:
    """BLIA.

    Attributes:
        alpha: the weight of similar reports against the files' own text.
        beta: the weight of recent fixes against everything else.
        days: how long a fix counts.
    """

    alpha: float = ALPHA
    beta: float = BETA
    days: float = DAYS
    name: str = "blia"

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """The combination of the four parts, (documents,)."""
        own = scaled(structured_vsm(query, corpus))
        similar = scaled(vectors_of(corpus).past.similarity(query))
        score = (1 - self.alpha) * own + self.alpha * similar + stack_trace(query, corpus)
        if corpus.history is None:
            return np.asarray((1 - self.beta) * score, np.float32)
        opened = query.report.opened
        commits = recent_fixes(corpus.history, corpus.number, opened, self.days)
        both = (1 - self.beta) * score + self.beta * commits
        return np.where(score > 0, both, 0).astype(np.float32)


def structured_vsm(query: Query, corpus: Corpus) -> Floats:
    """The cosines of the parts of each file with the parts of the report, (documents,)."""
    vectors = vectors_of(corpus)
    found = corpus.find(query)
    asks, idf = asked(query), vectors.idf.of(query.hashes)
    fields = {
        **{field: vectors.names[field].counts(query.hashes) for field in NAMES},
        "identifiers": found.fields["identifiers"],
        "comments": found.fields["comments"],
    }
    total = np.zeros(len(corpus), np.float32)
    for field, counts in fields.items():
        weight = COMMENT_WEIGHT if field == "comments" else 1.0
        total += weight * cosine(counts, vectors.norms(field), asks, idf).sum(axis=1)
    return total * length_boost(found.lengths["whole"])


# -- Stack traces ------------------------------------------------------------------------------


def stack_trace(query: Query, corpus: Corpus) -> Floats:
    """The boost of files in the report's stack traces and of what those import, (documents,).

    The rank of a frame counts all frames of the report from the last, those of libraries too.
    """
    boost = np.zeros(len(corpus), np.float32)
    if not query.frames:
        return boost
    by_name = _by_name(corpus)
    for rank, frame in enumerate(reversed(query.frames), 1):
        value = 1 / rank if rank <= RANKED_FRAMES else LOWEST_BOOST
        for number in _files_of(frame.file, by_name):
            boost[number] = boost[number] or value
    for number in np.flatnonzero(boost).tolist():
        for imported in corpus.imports[number]:
            boost[imported] = boost[imported] or LOWEST_BOOST
    return boost


def _by_name(corpus: Corpus) -> Mapping[tuple[str, ...], list[int]]:
    """The files by the least of its path that a frame must end with: from the topmost package."""
    packages = {parts[:-1] for parts in corpus.parts if parts[-1] == "__init__"}
    found: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, parts in enumerate(corpus.parts):
        # A script's own name is weak evidence: its directory must match, too.
        top = max(len(parts) - 2, 0)
        while top and parts[:top] in packages:
            top -= 1
        found[parts[top:]].append(number)
    return found


def _files_of(path: str, by_name: Mapping[tuple[str, ...], list[int]]) -> list[int]:
    """The files that a frame may be in, by the longest end of its path."""
    parts = tuple(path.rpartition(".")[0].split("/"))
    for begin in range(len(parts)):
        if parts[begin:] in by_name:
            return by_name[parts[begin:]]
    return []


# -- Recent fixes ------------------------------------------------------------------------------


def recent_fixes(
    history: History, number: Mapping[str, int], opened: float | None, days: float = DAYS
) -> Floats:
    """How much each file was fixed shortly before a report, (documents,).

    Args:
        history: the changes; those after the report do not count.
        number: of each path, as the paths are at the history's end.
        opened: when the report was made, in seconds since the epoch; None for the latest change.
        days: how long a fix counts.
    """
    scores = np.zeros(len(number), np.float32)
    if not history.changes:
        return scores
    now = history.changes[0].time if opened is None else opened
    later: dict[str, str] = {}
    for change in history.changes:
        age = (now - change.time) / _DAY_S
        if age > days:
            break
        if change.is_fix and age >= 0:
            value = 1 / (1 + np.exp(STEEPNESS * age / days))
            for path in {later.get(path, path) for path in change.files} & number.keys():
                scores[number[path]] += value
        for old, new in change.renames:
            later[old] = later.get(new, new)
    return scores


METHOD = Method("blia", BLIA, uses_history=True)
