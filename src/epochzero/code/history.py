"""Who changed what, when and with what else; which changes were fixes.

Only what a revision can reach is read, so that nothing later than the revision leaks in.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import zstandard

from epochzero.code.git import MissingObjectError
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.code.snapshot import Repository

__all__ = ["LARGEST_COCHANGE", "Change", "History"]

LARGEST_COCHANGE = 60
"""A commit of more files says nothing of which files belong together."""
MESSAGE_CHARACTERS = 600
FIX_CHARACTERS = 200
MOST_RENAMES = 400
"""Files added and deleted by one commit up to which renames with changes are looked for."""
FORMAT_VERSION = 1
SHORTEST_HASH = 40

_FIX = re.compile(
    r"\b(?:(?:hot|bug)?[ -]?fix(?:e[sd]|ing|up)?|bug(?:s|gy)?|errors?|erroneous|crash(?:e[sd]|ing)?"
    r"|fail(?:s|ed|ing|ures?)?|wrong(?:ly)?|incorrect(?:ly)?|broken?|breaks|defects?|faults?|faulty"
    r"|resolv(?:e[sd]?|ing)|regressions?|segfaults?|hangs?|deadlocks?|leak(?:s|ed|ing)?|typeerror"
    r"|valueerror|keyerror|attributeerror|exceptions?|invalid|missing|mistakes?|overflows?"
    r"|race condition|repairs?|corrects?|corrected|workaround|close[sd]? #\d+)\b",
    re.IGNORECASE,
)


class Change(NamedTuple):
    """A commit that is no merge.

    Attributes:
        commit: its full hash.
        time: when it was committed, in seconds since the epoch.
        author_hash: stands for the author; the address itself is not kept.
        message: the first 600 characters of subject and body.
        files: paths after the change, those that it deleted included.
        renames: old and new path of each file that it moved.
        is_fix: whether the first 200 characters of the message speak of a fault.
    """

    commit: str
    time: int
    author_hash: str
    message: str
    files: tuple[str, ...]
    renames: tuple[tuple[str, str], ...]
    is_fix: bool


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
        everything = _read(repository, tip, known)
        self._set(tip, repository.shallow, everything, until)

    def _set(
        self, tip: str, shallow: bool, everything: Sequence[Change], until: int | None
    ) -> None:
        self.tip = tip
        self.shallow = shallow
        self._everything = tuple(everything)
        self.changes = tuple(
            change for change in everything if until is None or change.time < until
        )

    # -- Of a path -----------------------------------------------------------------------------

    def of(self, path: str) -> tuple[Change, ...]:
        """The changes of a file, also under earlier names; the latest first."""
        return tuple([self.changes[n] for n in self._by_path.get(path, ())])

    def count(self, path: str) -> int:
        """How many changes a file has had."""
        return len(self._by_path.get(path, ()))

    def fixes(self, path: str) -> int:
        """How many of them were fixes."""
        return sum(change.is_fix for change in self.of(path))

    def last(self, path: str) -> Change | None:
        """The latest change of a file; None when there is none."""
        numbers = self._by_path.get(path)
        return self.changes[numbers[0]] if numbers else None

    def authors(self, path: str) -> Counter[str]:
        """How many changes each author made to a file, by `Change.author_hash`."""
        return Counter(change.author_hash for change in self.of(path))

    def cochanged(self, path: str) -> Counter[str]:
        """How often each other file changed in the same commit.

        Commits of more than `LARGEST_COCHANGE` files do not count.
        """
        together: Counter[str] = Counter()
        for number in self._by_path.get(path, ()):
            if len(self.changes[number].files) <= LARGEST_COCHANGE:
                together.update(self._present[number])
        del together[path]
        return together

    @cached_property
    def _present(self) -> list[frozenset[str]]:
        """The files of each change by the names that they have at the revision."""
        later: dict[str, str] = {}
        present = []
        for change in self.changes:
            present.append(frozenset([later.get(path, path) for path in change.files]))
            for old, new in change.renames:
                later[old] = later.get(new, new)
        return present

    @cached_property
    def _by_path(self) -> Mapping[str, list[int]]:
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number, paths in enumerate(self._present):
            for path in paths:
                numbers[path].append(number)
        return dict(numbers)

    # -- On disk -------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole history up to `tip`, whatever ``until`` was, to be kept by that commit."""
        head = [FORMAT_VERSION, self.tip, self.shallow, self._everything]
        return zstandard.compress(json.dumps(head, separators=(",", ":")).encode(), level=3)

    @classmethod
    def from_bytes(cls, data: bytes, until: int | None = None) -> History:
        """What `to_bytes` wrote.

        Args:
            data: the bytes.
            until: as for `History`.

        Raises:
            ValueError: the bytes are of another version or damaged.
        """
        try:
            version, tip, shallow, rows = json.loads(zstandard.decompress(data))
        except zstandard.ZstdError as error:
            raise ValueError(f"a damaged history: {error}") from error
        if version != FORMAT_VERSION:
            raise ValueError("a history of another version")
        history = cls.__new__(cls)
        history._set(tip, shallow, [_change(row) for row in rows], until)
        return history


def _change(row: tuple[str, int, str, str, list[str], list[list[str]], bool]) -> Change:
    commit, time, author, message, files, renames, is_fix = row
    moved = tuple([(old, new) for old, new in renames])
    return Change(commit, time, author, message, tuple(files), moved, is_fix)


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


def _read(repository: Repository, tip: str, known: History | None) -> list[Change]:
    """All changes up to a commit, the latest first."""
    before: Sequence[Change] = ()
    reach = [tip]
    if known is not None and _is_ancestor(repository, known, tip):
        before = known._everything
        reach.append(f"^{known.tip}")
    cut_off = _cut_off(repository)
    try:
        new = list(_changes(_fields(repository.git.stream(*_LOG, "-M", *reach))))
    except MissingObjectError:
        # Files that changed while they moved cannot be compared; those that only moved can.
        new = list(_changes(_fields(repository.git.stream(*_LOG, "-M100%", *reach))))
    new = [change for change in new if change.commit not in cut_off]
    # In both parts children come before their parents, and a stable sort keeps that.
    return sorted([*new, *before], key=lambda change: -change.time)


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
