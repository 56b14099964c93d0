"""The public API of libraries by version, read from the packages themselves.

A target with known packages and no captured API (`pip freeze`, a lock file) takes its API from here. `api_history/` has one
file per distribution, created by `bench/api_history.py` with the reader that captures a target. It contains the last version
of each minor release; patch releases are assumed to have the same API.

The text, compressed: a line with the versions, then a block per module as in `packed`. After ``@`` are the versions that have
a module or name: ``2-5,8-`` counts from 0, and a missing end means the last version; nothing means all versions of the
module.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType

from epochzero import zstd
from epochzero.check.target.model import CallSignature
from epochzero.check.target.packages import well_known
from epochzero.check.target.signature import Signatures, text_of

_FOLDER = "api_history"
_END = ".zst"
_LEVEL = 19
_RELEASE = re.compile(r"(?:\d+!)?(\d+)(?:\.(\d+))?")

Api = Mapping[str, Mapping[str, CallSignature | None]]
Spans = str
"""The versions as text; see above."""


class ApiHistory:
    """The API of one distribution over its versions; a module is parsed on first use.

    Attributes:
        distribution: normalized name.
        versions: oldest first.
    """

    def __init__(self, distribution: str, text: str) -> None:
        self.distribution = distribution
        head, _, blocks = text.partition("\n\n")
        self.versions = tuple(head.split())
        self._blocks: dict[str, tuple[Spans, str]] = {}
        for block in blocks.split("\n\n") if blocks else ():
            first, _, names = block.partition("\n")
            module, _, spans = first.partition("@")
            self._blocks[module] = (spans, names)

    @classmethod
    def of(cls, distribution: str, data: bytes) -> ApiHistory:
        """Parse a file that `written` created."""
        return cls(distribution, zstd.decompress(data).decode())

    def index(self, version: str) -> int | None:
        """The index of the recorded version of the same minor release."""
        wanted = _RELEASE.match(version.removeprefix("v"))
        for number, known in enumerate(self.versions):
            release = _RELEASE.match(known)
            if wanted and release and release.groups("0") == wanted.groups("0"):
                return number
        return None

    def modules(self, index: int) -> tuple[str, ...]:
        """The public modules of a version."""
        return tuple(name for name, (spans, _) in self._blocks.items() if _within(spans, index))

    def names(self, module: str, index: int) -> Mapping[str, CallSignature | None] | None:
        """The public names of a module in a version, as in `Target.api`; None if the version lacks the module."""
        spans, lines = self._blocks.get(module, ("", ""))
        if module not in self._blocks or not _within(spans, index):
            return None
        found: dict[str, str | None] = {}
        for line in lines.splitlines():
            text_line, at, where = line.partition("@")
            if not at or _within(where, index):
                name, tab, parameters = text_line.partition("\t")
                found[name] = parameters if tab else None
        return Signatures(found)


class _Version(Mapping[str, Mapping[str, CallSignature | None]]):
    """The API of one version, as in `Target.api`."""

    def __init__(self, history: ApiHistory, index: int) -> None:
        self._history = history
        self._index = index
        self._modules = dict.fromkeys(history.modules(index))
        self._read: dict[str, Mapping[str, CallSignature | None]] = {}

    def __getitem__(self, module: str) -> Mapping[str, CallSignature | None]:
        if module not in self._modules:
            raise KeyError(module)
        if module not in self._read:
            self._read[module] = self._history.names(module, self._index) or {}
        return self._read[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


@cache
def libraries() -> Mapping[str, str]:
    """The top-level modules with a known history, each with its distribution."""
    folder = files(__package__).joinpath(_FOLDER)
    found = sorted(path.name for path in folder.iterdir() if path.name.endswith(_END))
    names = [name.removesuffix(_END) for name in found]
    modules = well_known()
    return MappingProxyType(
        {module: name for name in names for module in modules.get(name, (name.replace("-", "_"),))}
    )


@cache
def history_of(distribution: str) -> ApiHistory | None:
    """The history of a distribution, by normalized name; None if there is none."""
    if distribution not in libraries().values():
        return None
    data = files(__package__).joinpath(_FOLDER, distribution + _END).read_bytes()
    return ApiHistory.of(distribution, data)


@cache
def api_of(distribution: str, version: str) -> Api | None:
    """The API of a version of a distribution; None if unknown."""
    history = history_of(distribution)
    index = history.index(version) if history is not None else None
    return None if history is None or index is None else _Version(history, index)


# -- Writing -----------------------------------------------------------------------------------


def written(versions: Sequence[str], apis: Sequence[Api]) -> bytes:
    """Serialize a history.

    Args:
        versions: oldest first.
        apis: API of each version, as in `Target.api`.
    """
    blocks = [" ".join(versions)]
    last = len(versions) - 1
    for module in dict.fromkeys(name for api in apis for name in api):
        there = [index for index, api in enumerate(apis) if module in api]
        lines: dict[str, list[int]] = {}
        for index in there:
            for name, signature in apis[index][module].items():
                line = name if signature is None else f"{name}\t{text_of(signature)}"
                lines.setdefault(line, []).append(index)
        text_line = [_at(line, indexes, there, last) for line, indexes in sorted(lines.items())]
        blocks.append("\n".join([_at(module, there, range(last + 1), last), *text_line]))
    return zstd.compress_far("\n\n".join(blocks).encode(), _LEVEL, window_log=26)


def _at(text: str, indexes: Sequence[int], always: Sequence[int], last: int) -> str:
    return text if list(indexes) == list(always) else f"{text}@{_spans(indexes, last)}"


def _spans(indexes: Sequence[int], last: int) -> Spans:
    """Numbers as ranges; ``3-`` for all from 3 on.

    >>> _spans([0, 1, 2, 5, 7, 8], 8)
    '0-2,5,7-'
    """
    starts = [indexes[0], *(b for a, b in pairwise(indexes) if b != a + 1)]
    ends = [*(a for a, b in pairwise(indexes) if b != a + 1), indexes[-1]]
    pairs = zip(starts, ends, strict=True)
    return ",".join(f"{a}-" if b == last else str(a) if a == b else f"{a}-{b}" for a, b in pairs)


@cache  # Most names of a library appear and disappear together with others.
def _within(spans: Spans, index: int) -> bool:
    """Whether a number is in the ranges; an empty text contains every number.

    >>> _within("0-2,5,7-", 5), _within("0-2,5,7-", 6), _within("", 3)
    (True, False, True)
    """
    if not spans:
        return True
    starts, ends = [], []
    for span in spans.split(","):
        start, dash, end = span.partition("-")
        starts.append(int(start))
        ends.append(int(end) if end else (int(start) if not dash else index))
    place = bisect_right(starts, index) - 1
    return place >= 0 and index <= ends[place]
