"""Files that a report names: in frames of a traceback, by path, as a module, or by a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from epochzero.code.words import hashes
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Columns, Floats
from epochzero.locate.mentions import agreeing, longest, meant
from epochzero.locate.query import Query

_COMMON_STEMS = frozenset(
    [
        "__init__",
        "setup",
        "utils",
        "util",
        "main",
        "base",
        "core",
        "test",
        "train",
        "model",
        "models",
        "data",
        "config",
        "common",
        "types",
        "version",
        "api",
        "run",
    ]
)
SHORTEST_JOINED = 5
"""Shorter stems are not searched for inside other words."""


def mentions(query: Query, corpus: Corpus) -> Columns:
    """All of it."""
    return (
        _frames(query, corpus)
        | _paths(query, corpus)
        | _modules(query, corpus)
        | _stems(query, corpus)
    )


def mentioned(columns: Columns) -> Floats:
    """How surely the report names each file, from 0 to 1.

    Args:
        columns: of `mentions`.
    """
    sure = columns["frame_innermost"] + columns["path_in_text"] / 2
    return np.minimum(1.0, sure + 0.5 * (columns["module_in_text"] > 0)).astype(np.float32)


def _frames(query: Query, corpus: Corpus) -> Columns:
    """The frames of tracebacks; the innermost counts most."""
    n = len(corpus)
    innermost, often, suffix, function = (np.zeros(n, np.float32) for _ in range(4))
    functions = sorted({int(h) for h in hashes(f.function for f in query.frames)})
    defines = corpus.defined.holders(np.array(functions, np.uint32))
    inner = 0
    for frame in reversed(query.frames):
        agreed = agreeing(frame.file, corpus)
        agree, numbers = meant(frame.file, corpus, agreed)
        for number in numbers:
            often[number] += 1
            near = 1 / (1 + inner)
            if not innermost[number]:
                innermost[number] = near
                suffix[number] = min(1.0, agree / len(corpus.parts[number]))
            (name,) = hashes([frame.function]).tolist()
            if frame.function and defines[number, functions.index(name)]:
                function[number] = max(function[number], near)
        inner += bool(numbers)
    return {
        "frame_innermost": innermost,
        "frame_share": np.asarray(often / max(1, inner), np.float32),
        "frame_suffix": suffix,
        "frame_function": function,
        "frames": np.full(n, inner, np.float32),
    }


def _paths(query: Query, corpus: Corpus) -> Columns:
    """Paths in the text."""
    columns = {
        name: np.zeros(len(corpus), np.float32) for name in ("path_in_text", "path_in_title")
    }
    for path in query.paths:
        best, at_best = longest(agreeing(path, corpus))
        for number in at_best:
            whole = best == len(corpus.parts[number])
            value = (best / (best + 1) + whole) / len(at_best)
            name = "path_in_title" if path in query.title_paths else "path_in_text"
            columns[name][number] = max(columns[name][number], value)
    return columns


def _modules(query: Query, corpus: Corpus) -> Columns:
    """Dotted names in the text that start with a file's module name."""
    begun: dict[str, int] = {}
    for name in query.modules:
        pieces = name.split(".")
        for length in range(2, len(pieces) + 1):
            begun[".".join(pieces[:length])] = length
    scores = np.zeros(len(corpus), np.float32)
    for number, parts in enumerate(corpus.parts):
        named = parts[:-1] if parts[-1] == "__init__" else parts
        for skipped in range(min(3, len(named) - 1)):
            length = begun.get(".".join(named[skipped:]), 0)
            scores[number] = max(scores[number], length / (1 + skipped))
    return {"module_in_text": scores}


def _stems(query: Query, corpus: Corpus) -> Columns:
    """The stem of a file as a word of the text, or inside of one."""
    text, title = query.texts["all"].lower(), query.report.title.lower()
    in_text, in_title = (frozenset(re.findall(r"[a-z_]\w*", words)) for words in (text, title))
    joined_text, joined_title = (re.sub(r"[\W_]", "", words) for words in (text, title))
    stems = [_stem(parts) for parts in corpus.parts]
    same = np.array([len(corpus.by_stem[p[-1]]) for p in corpus.parts], np.float32)
    whole = np.array([p[-1] != "__init__" for p in corpus.parts])
    text_hit = _hits(stems, in_text) * np.where(whole, 1 / np.sqrt(same), 0.5)
    long = [
        stem.replace("_", "") if len(stem) >= SHORTEST_JOINED and stem not in _COMMON_STEMS else ""
        for stem in stems
    ]
    return {
        "stem_in_text": text_hit.astype(np.float32),
        "stem_in_title": _hits(stems, in_title),
        "stem_joined_text": _inside(long, joined_text),
        "stem_joined_title": _inside(long, joined_title),
    }


def _stem(parts: Sequence[str]) -> str:
    """The last part of a path, of a package's own file that of its folder."""
    if parts[-1] != "__init__":
        return parts[-1].lower()
    return parts[-2].lower() if len(parts) > 1 else ""


def _hits(stems: Iterable[str], held: frozenset[str]) -> Floats:
    return np.array([stem in held for stem in stems], np.float32)


def _inside(stems: Iterable[str], text: str) -> Floats:
    return np.array([bool(stem) and stem in text for stem in stems], np.float32)
