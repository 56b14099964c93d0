"""Why a place is ranked where it is: what the report and the code have in common there.

The reasons are those of a person who compares the two; they hold for every method, and none claims
to be how its score came about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from epochzero.code.words import IDENTIFIER, hashes, phrases, words
from epochzero.locate.corpus import Bags, Corpus
from epochzero.locate.index import K1, Floats, inverse_document_frequency
from epochzero.locate.mentions import Mention
from epochzero.locate.model import Reason
from epochzero.locate.query import PARTS, Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import Unit


_Lines: TypeAlias = Sequence[tuple[str, "NDArray[np.uint32]"]]

MOST_NAMES = 3
MOST_WORDS = 4
LEAST_SHARE = 0.01
MOST_LINES = 200
"""Lines of a report that are searched for in string literals."""
FEWEST_PHRASES = 2
"""So many runs of three words that few files hold make a message."""
COMMON = 0.05
"""A phrase or name in a larger share of the files is not evidence."""
FEW = 3
"""However small the corpus is, so many files are few."""
RECENT_S = 365 * 24 * 3600
LONGEST_TEXT = 100
_NO_MESSAGE = ("Traceback (most recent", 'File "')
"""How lines begin that Python writes around every message."""
_OF_REPORTS = frozenset(
    words(
        "add behavior bug bugs call caused check code com command create current describe "
        "description doesn environment error errors example examples expected fail failed file "
        "files find fix follow following found get github happen help home however https info "
        "information issue issues last latest lib like line lines make master message name need "
        "new next occur one open org os platform please print problem provide py python recent "
        "reproduce result results run running script seem site source steps system traceback try "
        "trying update use used user using version want work working"
    )
)
"""Words of reports in general: most of them are in over a tenth of Denchmark's. Common words of deep
learning, such as "model", are not among them, since they can be what a report is about."""
_PIECE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


class Explainer:
    """Gives the reasons for places in a corpus, for one query.

    Args:
        query: what was searched for.
        corpus: where; its past reports and its history, where it has them, give reasons too.
        mentioned: which files the report names.
    """

    def __init__(self, query: Query, corpus: Corpus, mentioned: Sequence[Mention]) -> None:
        self._query = query
        self._corpus = corpus
        self._mentioned = mentioned
        self._few = max(FEW, COMMON * len(corpus))

    def reasons(
        self, document: int, unit: Unit | None = None, place: int = 0
    ) -> tuple[Reason, ...]:
        """Why a file, or a function of it; the strongest reason first.

        Args:
            document: the file's number in the corpus.
            unit: the function; None for the whole file.
            place: its number among the units of the file.
        """
        found = [
            *self._frames(document, unit),
            *self._named(document),
            *self._names(document, unit),
            *self._messages(document),
            *self._words(document, None if unit is None else place),
            *self._past(document),
            *self._fixes(document, unit),
        ]
        return tuple(found)

    # -- What the report names -----------------------------------------------------------------

    def _frames(self, document: int, unit: Unit | None) -> Iterator[Reason]:
        """The innermost frame that lies in the place."""
        last = self._query.frames[-1] if self._query.frames else None
        for mention in reversed(self._mentioned):
            frame = mention.frame
            if mention.document != document or frame is None:
                continue
            inside = unit is None or frame.function == unit.name
            if not inside and unit is not None and frame.line and not frame.function:
                inside = unit.start <= frame.line <= unit.end
            if inside:
                where = [frame.function] if frame.function else []
                where += [f"line {frame.line}"] if frame.line else []
                how = "ends here" if frame is last else "passes here"
                yield Reason("frame", ": ".join([f"the traceback {how}", ", ".join(where)]))
                return

    def _named(self, document: int) -> Iterator[Reason]:
        """The clearest path or module that means the file."""
        named = [
            mention
            for mention in self._mentioned
            if mention.document == document and mention.frame is None
        ]
        if named:
            best = max(named, key=lambda mention: mention.strength)
            who = "the title" if best.text in self._query.title_paths else "the report"
            what = "the module " if best.kind == "module" else ""
            text = best.text
            if text.startswith("//"):  # a link, without its scheme
                text = self._corpus.paths[document]
            yield Reason("path", f"{who} names {what}{_short(text)}")

    def _names(self, document: int, unit: Unit | None) -> Iterator[Reason]:
        """Identifiers of the report that are defined here, the rarest first."""
        names = [own.name for own in self._corpus.parsed[document].units]
        here = set(names if unit is None else unit.qualified.split("."))
        often = self._identifiers
        rare = sorted((often[name], name) for name in here & often.keys())
        rare = [(many, name) for many, name in rare if many <= self._few]
        if rare:
            listed = _listed([_short(name) for _, name in rare[:MOST_NAMES]])
            yield Reason("name", f"defines {listed}, which the report names")

    @cached_property
    def _identifiers(self) -> Mapping[str, int]:
        """The identifiers of the report with the number of files that define them."""
        names = sorted(self._query.identifiers["all"])
        codes = hashes(names)
        every = np.unique(codes)
        often = self._corpus.defined.holders(every).sum(axis=0)
        return dict(zip(names, often[np.searchsorted(every, codes)].tolist(), strict=True))

    # -- Text that report and file share --------------------------------------------------------

    def _messages(self, document: int) -> Iterator[Reason]:
        """The line of the report that the file's string literals match best, if few other files match it."""
        lines, every, rare = self._phrases
        here = every[rare[document]]
        common = [int(np.isin(codes, here).sum()) for _, codes in lines]
        if common and max(common) >= FEWEST_PHRASES:
            best, _ = lines[int(np.argmax(common))]
            yield Reason("message", f"its string literals share words with: {_short(best)}")

    @cached_property
    def _phrases(self) -> tuple[_Lines, NDArray[np.uint32], NDArray[np.bool_]]:
        """The lines of the report with their phrases; all phrases; which file holds which rare one."""
        texts = dict.fromkeys(line.strip() for line in self._query.texts["all"].split("\n"))
        messages = [line for line in texts if not line.startswith(_NO_MESSAGE)]
        lines = [(line, phrases(line)) for line in messages[:MOST_LINES]]
        codes = [own for _, own in lines]
        every = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.uint32)
        held = self._corpus.phrases.holders(every)
        return lines, every, held & (held.sum(axis=0) <= self._few)

    def _words(self, document: int, place: int | None) -> Iterator[Reason]:
        """The words that give most of the place's BM25, with their shares."""
        if place is None:
            found = self._corpus.find(self._query)
            counts = found.fields["whole"][document] + self._path_counts[document]
        else:
            bag = self._corpus.parsed[document].unit_bags[place]
            counts = Bags([bag]).counts(self._query)[0]
        share = counts / (counts + K1) * self._weights
        total = float(share.sum())
        words: dict[str, str] = {}
        for number in np.argsort(-share, kind="stable"):
            if len(words) == MOST_WORDS or share[number] < LEAST_SHARE * total or not total:
                break
            word = self._written(number)
            if self._query.terms[number] in _OF_REPORTS:
                continue
            # The parts of an identifier are counted in addition to it, but tell a reader nothing new.
            if not any(word.lower() in other for other in words):
                words[word.lower()] = f"{word} ({share[number] / total:.0%})"
        if words:
            yield Reason("words", f"shares the words {', '.join(words.values())}")

    @cached_property
    def _path_counts(self) -> Floats:
        return self._corpus.path_counts(self._query)

    @cached_property
    def _weights(self) -> Floats:
        counts = self._corpus.find(self._query).fields["whole"]
        weights = self._query.weights[:, PARTS.index("all")]
        return np.asarray(inverse_document_frequency(counts) * weights, np.float32)

    def _written(self, number: int) -> str:
        """A word as the report has it; `Query.terms` are stems."""
        term = self._query.terms[number]
        return _short(self._surfaces.get(term, term))

    @cached_property
    def _surfaces(self) -> Mapping[str, str]:
        """For each term the first word of the report that gives it."""
        surfaces: dict[str, str] = {}
        for identifier in dict.fromkeys(IDENTIFIER.findall(self._query.texts["all"])):
            found = words(identifier)
            if len(found) == 1:
                surfaces.setdefault(found[0], identifier.lower())
            elif found:
                surfaces.setdefault(found[0], identifier)
                for piece in _PIECE.findall(identifier):
                    for stem in words(piece):
                        surfaces.setdefault(stem, piece.lower())
        return surfaces

    # -- What happened to it -------------------------------------------------------------------

    def _past(self, document: int) -> Iterator[Reason]:
        """The past report fixed here whose title is most like this report."""
        path = self._corpus.paths[document]
        titles = [past.report.title for past in self._corpus.past if path in past.fixed]
        best = max(titles, key=self._in_common, default="")
        if self._in_common(best):
            yield Reason("report", f"a similar report was fixed here: {_short(best)}")

    def _fixes(self, document: int, unit: Unit | None) -> Iterator[Reason]:
        """Fixes of the year before."""
        history = self._corpus.history
        if history is None or not history.changes:
            return
        now = history.changes[0].time
        recent = [
            change
            for change in history.of(self._corpus.paths[document])
            if change.is_fix and now - change.time <= RECENT_S
        ]
        if recent:
            # The one with most words of the report; the latest if none has any.
            like = max(recent, key=lambda change: self._in_common(change.message))
            day = datetime.fromtimestamp(like.time, UTC).strftime("%Y-%m-%d")
            many = f"{len(recent)} fixes in the year before, such as"
            times = "one fix in the year before," if len(recent) == 1 else many
            subject = _short(like.message.partition("\n")[0])
            whose = "" if unit is None else "its file had "
            text = f"{whose}{times} on {day}: {subject}"
            yield Reason("history", text)

    def _in_common(self, text: str) -> float:
        """The weight of the words that a text shares with the report."""
        return sum(self._weight_of.get(word, 0.0) for word in set(words(text)))

    @cached_property
    def _weight_of(self) -> Mapping[str, float]:
        return dict(zip(self._query.terms, self._weights.tolist(), strict=True))


def _short(text: str) -> str:
    """One line of a text, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
