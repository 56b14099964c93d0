"""Which files a report names: by a frame of a traceback, by a path, by a dotted module name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from epochzero.locate.corpus import Corpus
from epochzero.locate.query import CalledFrame, Query

__all__ = ["Mention", "mentions"]

MODULE_STRENGTH = 0.6
"""A module is named more often in passing than a path."""
_EVERYWHERE = frozenset({"__init__", "setup", "train", "main"})
"""Such a name alone says nothing of which file is meant."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a report that names a file.

    Attributes:
        document: the file's number in the corpus.
        kind: ``frame``, ``path`` or ``module``.
        text: what stands in the report.
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
    """The files that end in a path, with how sure that is: ``n / (n + 1)`` for n equal parts."""
    named, _, extension = path.strip("./").rpartition(".")
    parts = named.split("/")
    shared = {
        n: _common_end(parts, corpus.parts[n])
        for n in corpus.by_stem.get(parts[-1], ())
        if corpus.paths[n].endswith(f".{extension}")
    }
    most = max(shared.values(), default=0)
    short = len(parts) == 1 and parts[0] not in _EVERYWHERE
    return [
        (n, most / (most + 1))
        for n, count in shared.items()
        if count == most and (most > 1 or short or len(corpus.parts[n]) == 1)
    ]


def _common_end(one: list[str], other: tuple[str, ...]) -> int:
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _modules(query: Query, corpus: Corpus) -> Iterator[Mention]:
    for name in sorted(query.modules):
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            document = corpus.modules.get(".".join(parts[:end]))
            if document is not None:
                yield Mention(document, "module", name, MODULE_STRENGTH)
                break
