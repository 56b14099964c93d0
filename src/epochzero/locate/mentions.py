"""Which files a report names: by a frame of a traceback, by a path, by a dotted module name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import CalledFrame, Query

MODULE_STRENGTH = 0.6
"""A module is named more often in passing than a path."""
_EVERYWHERE = frozenset({"__init__", "setup", "train", "main"})
"""Such a name alone does not identify a file."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a report that names a file.

    Attributes:
        document: the file's number in the corpus.
        kind: ``frame``, ``path`` or ``module``.
        text: as written in the report; of a dotted name the part that names the module.
        strength: how clearly it is meant, 0 to 1.
        frame: of a traceback; None for the other kinds.
    """

    document: int
    kind: Literal["frame", "path", "module"]
    text: str
    strength: float
    frame: CalledFrame | None = None


def mentions(query: Query, corpus: Corpus) -> tuple[Mention, ...]:
    """What in a report names files of a corpus, in the order of the report.

    Of several files that end in the named path equally well, each is meant. Frames further in count
    more, up to twice as much as the first.
    """
    return (*_frames(query, corpus), *_paths(query, corpus), *_modules(query, corpus))


def _frames(query: Query, corpus: Corpus) -> Iterator[Mention]:
    for number, frame in enumerate(query.frames, 1):
        depth = (1 + number / len(query.frames)) / 2
        for document, share in _files(frame.file, corpus):
            yield Mention(document, "frame", frame.file, depth * share, frame)


def _paths(query: Query, corpus: Corpus) -> Iterator[Mention]:
    for path in query.paths:
        for document, share in _files(path, corpus):
            yield Mention(document, "path", path, share)


def _files(path: str, corpus: Corpus) -> list[tuple[int, float]]:
    """The files that a path means, with how sure that is: ``n / (n + 1)`` for n equal parts."""
    extension = path.rpartition(".")[2]
    agreed = {
        number: count
        for number, count in agreeing(path, corpus).items()
        if corpus.paths[number].endswith(f".{extension}")
    }
    count, numbers = meant(path, corpus, agreed)
    if count == 1 and _parts(path)[0] in _EVERYWHERE:
        numbers = [number for number in numbers if len(corpus.parts[number]) == 1]
    return [(number, count / (count + 1)) for number in numbers]


# -- From a path to files ----------------------------------------------------------------------


def agreeing(path: str, corpus: Corpus) -> dict[int, int]:
    """The files of the same stem as a path, with how many parts are equal from the end on.

    A former name of a file counts if no file of today agrees as well: reports are often written by
    users of an older version.
    """
    named = _parts(path)
    agreed = {
        number: _common_end(named, corpus.parts[number])
        for number in corpus.by_stem.get(named[-1], ())
    }
    most = max(agreed.values(), default=0)
    for parts, number in corpus.former_by_stem.get(named[-1], ()):
        count = _common_end(named, parts)
        if count > max(most, agreed.get(number, 0)):
            agreed[number] = count
    return agreed


def longest(agreed: Mapping[int, int]) -> tuple[int, list[int]]:
    """How many parts are equal at most, and the files for which that is so."""
    most = max(agreed.values(), default=0)
    return most, [number for number, count in agreed.items() if count == most]


def meant(path: str, corpus: Corpus, agreed: Mapping[int, int]) -> tuple[int, list[int]]:
    """Of files as `agreeing` gives them those that a path means, with how many parts are equal: a
    file's name alone is enough where the path is no more than that, or the file lies at the top.
    """
    most, numbers = longest(agreed)
    if most <= 1 and "/" in path.strip("./"):
        numbers = [number for number in numbers if len(corpus.parts[number]) == 1]
    return most, numbers


def _parts(path: str) -> list[str]:
    """The directories and the stem of a path, without a prefix that only marks its start."""
    return path.rpartition(".")[0].strip("./").split("/")


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _modules(query: Query, corpus: Corpus) -> Iterator[Mention]:
    for name in sorted(query.modules):
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            module = ".".join(parts[:end])
            if (document := corpus.modules.get(module)) is not None:
                yield Mention(document, "module", module, MODULE_STRENGTH)
                break
