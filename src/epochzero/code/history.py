"""Who changed what, when and with what else; which changes were fixes.

Only what a revision can reach is read, so that nothing later than the revision leaks in.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from epochzero.code.changes import Change, Changes
from epochzero.code.git import MissingObjectError
from epochzero.code.words import ranges
from epochzero.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code.snapshot import Repository

MOST_CHANGES = 30_000
"""Older ones are left out: reading takes about half a second and two megabytes for every thousand,
and what was changed so long ago says little of a bug of today."""

READ_AT_ONCE = 2_000
"""So many changes are read before they become columns, which need less memory."""
LARGEST_COCHANGE = 60
"""A commit of more files says nothing of which files belong together."""
MESSAGE_CHARACTERS = 600
FIX_CHARACTERS = 200
MOST_RENAMES = 400
"""Files added and deleted by one commit up to which renames with changes are looked for."""
SHORTEST_HASH = 40

_FIX = re.compile(
    r"\b(?:(?:hot|bug)?[ -]?fix(?:e[sd]|ing|up)?|bug(?:s|gy)?|errors?|erroneous|crash(?:e[sd]|ing)?"
    r"|fail(?:s|ed|ing|ures?)?|wrong(?:ly)?|incorrect(?:ly)?|broken?|breaks|defects?|faults?|faulty"
    r"|resolv(?:e[sd]?|ing)|regressions?|segfaults?|hangs?|deadlocks?|leak(?:s|ed|ing)?|typeerror"
    r"|valueerror|keyerror|attributeerror|exceptions?|invalid|missing|mistakes?|overflows?"
    r"|race condition|repairs?|corrects?|corrected|workaround|close[sd]? #\d+)\b",
    re.IGNORECASE,
)


class History:
    """The changes that led to a revision, the latest first.

    Paths are those of the revision: a file that was moved keeps the changes of its old paths.

    Args:
        repository: where to read.
        rev: the revision.
        until: only what was committed before this time, in seconds since the epoch.
        known: the history of an earlier revision; when it is an ancestor, only what came after it
            is read.

    Attributes:
        tip: the commit that ``rev`` names.
        shallow: whether the clone is shallow, so that older changes are not known.
        cut: whether there are more than `MOST_CHANGES`, so that older ones are left out.
        changes: the changes.

    Raises:
        InputError: there is no such revision, or objects are missing.
    """

    def __init__(
        self,
        repository: Repository,
        rev: str = "HEAD",
        until: int | None = None,
        known: History | None = None,
    ) -> None:
        tip = repository.resolve(rev).id
        everything, cut = _read(repository, tip, known)
        self._set(tip, repository.shallow, cut, everything, until)

    def _set(
        self, tip: str, shallow: bool, cut: bool, everything: Changes, until: int | None
    ) -> None:
        self.tip = tip
        self.shallow = shallow
        self.cut = cut
        self._everything = everything
        self.changes = everything
        if until is not None and (everything.times >= until).any():
            self.changes = everything.take(np.flatnonzero(everything.times < until))

    # -- Of a path -----------------------------------------------------------------------------

    def of(self, path: str) -> tuple[Change, ...]:
        """The changes of a file, also under earlier names; the latest first."""
        return tuple([self.changes[n] for n in self._numbers(path).tolist()])

    def count(self, path: str) -> int:
        """How many changes a file has had."""
        return len(self._numbers(path))

    def fixes(self, path: str) -> int:
        """How many of them were fixes."""
        return int(self.changes.fixes[self._numbers(path)].sum())

    def last(self, path: str) -> Change | None:
        """The latest change of a file; None when there is none."""
        numbers = self._numbers(path)
        return self.changes[int(numbers[0])] if len(numbers) else None

    def authors(self, path: str) -> Counter[str]:
        """How many changes each author made to a file, by `Change.author_hash`."""
        return Counter(change.author_hash for change in self.of(path))

    def cochanged(self, path: str) -> Counter[str]:
        """How often each other file changed in the same commit.

        Commits of more than `LARGEST_COCHANGE` files do not count.
        """
        change, present = self.changes.today
        numbers = self._numbers(path)
        small = numbers[self.changes.file_counts[numbers] <= LARGEST_COCHANGE]
        begin, end = np.searchsorted(change, small), np.searchsorted(change, small, "right")
        together = Counter(
            n for b, e in zip(begin, end, strict=True) for n in present[b:e].tolist()
        )
        others = {self.changes.paths[n]: often for n, often in together.items()}
        others.pop(path, None)
        return Counter(others)

    def name_of(self, path: str) -> str:
        """The name at the revision of a file that had another before; by the latest move of it."""
        return self.changes.moved.get(path, path)

    def touching(self, paths: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The changes of many files, as `of` gives them one by one.

        Returns:
            The places in ``paths``, rising, and for each the place of a change in `changes`, the
            latest first.
        """
        numbers, bounds = self._by_path
        known = [
            (place, n) for place, p in enumerate(paths) if (n := self._number.get(p)) is not None
        ]
        place, path = np.array(known, np.int64).reshape(-1, 2).T
        entries, found = ranges(bounds, path)
        return np.repeat(place, np.diff(found)), numbers[entries]

    def _numbers(self, path: str) -> NDArray[np.int64]:
        """The places of a file's changes in `changes`."""
        return self.touching((path,))[1]

    @cached_property
    def _number(self) -> Mapping[str, int]:
        """The number of each path."""
        return {path: number for number, path in enumerate(self.changes.paths)}

    @cached_property
    def _by_path(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The changes of one path after those of another, and where those of each begin."""
        change, path = self.changes.today
        order = np.argsort(path, kind="stable")
        return change[order], np.searchsorted(path[order], np.arange(len(self.changes.paths) + 1))

    # -- On disk -------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole history up to `tip`, whatever ``until`` was, to be kept by that commit."""
        return self._everything.to_bytes(tip=self.tip, shallow=self.shallow, cut=self.cut)

    @classmethod
    def from_bytes(cls, data: bytes, until: int | None = None) -> History:
        """What `to_bytes` wrote.

        Args:
            data: the bytes.
            until: as for `History`.

        Raises:
            ValueError: the bytes are of another version or damaged.
        """
        everything, extra = Changes.from_bytes(data)
        history = cls.__new__(cls)
        history._set(extra["tip"], extra["shallow"], extra["cut"], everything, until)
        return history


# -- From git ----------------------------------------------------------------------------------

_LOG = (
    "log",
    "-z",
    "--no-merges",
    "--name-status",
    f"-l{MOST_RENAMES}",
    "--root",
    "--encoding=UTF-8",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-show-signature",
    "--no-notes",
    "--no-relative",
    "--ignore-submodules=none",
    "--format=%H%x00%ct%x00%ae%x00%B%x00",
)


def _read(repository: Repository, tip: str, known: History | None) -> tuple[Changes, bool]:
    """The changes up to a commit, the latest first, and whether older ones are left out."""
    if known is not None and known.tip == tip and not known.shallow:
        return known._everything, known.cut
    before: Changes | None = None
    reach = [f"--max-count={MOST_CHANGES + 1}", tip]
    cut = False
    if known is not None and _is_ancestor(repository, known, tip):
        before, cut = known._everything, known.cut
        reach.append(f"^{known.tip}")
    cut_off = _cut_off(repository)
    try:
        found = _columns(_fields(repository.git.stream(*_LOG, "-M", *reach)), cut_off)
    except MissingObjectError:
        # Files that changed while they moved cannot be compared; those that only moved can.
        found = _columns(_fields(repository.git.stream(*_LOG, "-M100%", *reach)), cut_off)
    # In both parts children come before their parents, and a stable sort keeps that.
    every = (found if before is None else found.joined(before)).latest_first()
    return every[:MOST_CHANGES], cut or len(every) > MOST_CHANGES


def _columns(fields: Iterator[bytes], cut_off: Container[str]) -> Changes:
    """The changes of ``git log``, without some commits."""
    changes = (change for change in _changes(fields) if change.commit not in cut_off)
    found = Changes.of(())
    while some := list(islice(changes, READ_AT_ONCE)):
        found = found.joined(Changes.of(some))
    return found


_HASH = re.compile(r"[0-9a-f]{40,64}")


def _is_ancestor(repository: Repository, known: History, tip: str) -> bool:
    """Whether a history can be continued: not where a shallow clone may have been deepened."""
    if known.shallow or repository.shallow or not _HASH.fullmatch(known.tip):
        return False
    output, _ = repository.git.attempt("merge-base", "--is-ancestor", known.tip, tip)
    return output is not None


def _cut_off(repository: Repository) -> frozenset[str]:
    """The commits at which a shallow clone ends: they look as if they had added every file."""
    if not repository.shallow:
        return frozenset()
    path = repository.git.run("rev-parse", "--git-path", "shallow").removesuffix(b"\n")
    try:
        return frozenset((repository.git.folder / os.fsdecode(path)).read_text("ascii").split())
    except (OSError, ValueError) as error:
        raise InputError(f"{repository.path}: its list of shallow commits: {error}") from error


def _fields(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The parts of a stream between its NUL bytes; empty ones are the log's own, not paths."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _changes(fields: Iterator[bytes]) -> Iterator[Change]:
    """The commits of ``git log`` in the format of `_LOG`.

    Four fields make the head of a commit. Then come the kinds and paths of its changes, until a
    field is as long as a hash, which no kind is.
    """
    field = next(fields, None)
    while field is not None:
        commit = field.strip().decode("ascii", "replace")
        time, author, message = (next(fields, b"") for _ in range(3))
        files: list[str] = []
        renames: list[tuple[str, str]] = []
        while (field := next(fields, None)) is not None:
            kind = field.lstrip(b"\n")
            if len(kind) >= SHORTEST_HASH:
                break
            if kind:
                path = next(fields, b"").decode("utf-8", "surrogateescape")
                if kind.startswith((b"R", b"C")):
                    old, path = path, next(fields, b"").decode("utf-8", "surrogateescape")
                    renames.append((old, path))
                files.append(path)
        yield _change_of(commit, time, author, message, files, renames)


def _change_of(
    commit: str,
    time: bytes,
    author: bytes,
    message: bytes,
    files: Sequence[str],
    renames: Sequence[tuple[str, str]],
) -> Change:
    text = message.decode("utf-8", "replace").strip()
    return Change(
        commit=commit,
        time=int(time) if time.isdigit() else 0,
        author_hash=blake2b(author.lower(), digest_size=8).hexdigest(),
        message=text[:MESSAGE_CHARACTERS],
        files=tuple(files),
        renames=tuple(renames),
        is_fix=bool(_FIX.search(text[:FIX_CHARACTERS])),
    )
