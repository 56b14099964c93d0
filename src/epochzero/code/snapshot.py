"""A repository's files at a revision, straight from git's objects.

Nothing is checked out and nothing is written. `epochzero.code.git` says how untrusted repositories
are kept from running anything.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol, cast
from weakref import finalize

from epochzero.code.git import MISSING_ADVICE, Git, MissingObjectError, complaint
from epochzero.errors import InputError
from epochzero.file_access import current, open_file
from epochzero.platform import BINARY, NO_FOLLOW, NON_BLOCKING

if TYPE_CHECKING:
    import subprocess


LARGEST_BYTES = 2_000_000
"""Larger files are data, not code; they are listed but never read."""
WINDOW_FILES = 256
WINDOW_BYTES = 8 << 20
"""So much is asked of git at a time: its input must fit a pipe, its output memory."""


class Commit(NamedTuple):
    """A commit.

    Attributes:
        id: the full hash.
        time: when it was committed, in seconds since the epoch.
        parents: hashes of its parents; those of a shallow clone's first commits are not there.
    """

    id: str
    time: int
    parents: tuple[str, ...]


class File(NamedTuple):
    """A regular file.

    Attributes:
        path: from the top of the repository; bytes that are no UTF-8 are surrogates, as in
            `os.fsdecode`.
        blob: the hash of its content; empty for a file above `LARGEST_BYTES` of a work tree.
        size: in bytes.
    """

    path: str
    blob: str
    size: int


class _BlobReader(Protocol):
    """How the content of files is got, in order."""

    def __call__(self, files: Sequence[File], /) -> Iterator[tuple[File, bytes]]: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All regular files at one moment; no submodules, no symbolic links.

    Attributes:
        commit: the commit; for a work tree the one that it is based on.
        files: in the order of their paths.
        submodules: paths of the repositories that are part of it and whose files are not.
    """

    commit: Commit
    files: tuple[File, ...]
    _reader: _BlobReader
    submodules: tuple[str, ...] = ()

    def read(self, files: Iterable[File]) -> Iterator[tuple[File, bytes]]:
        """The content of files of this snapshot, in the order given, a few at a time.

        Files above `LARGEST_BYTES` are left out.

        Raises:
            InputError: an object is missing, or a file of a work tree changed meanwhile.
        """
        for window in _windows(file for file in files if file.size <= LARGEST_BYTES):
            yield from self._reader(window)


def _windows(files: Iterable[File]) -> Iterator[list[File]]:
    window: list[File] = []
    size = 0
    for file in files:
        if window and (len(window) == WINDOW_FILES or size + file.size > WINDOW_BYTES):
            yield window
            window, size = [], 0
        window.append(file)
        size += file.size
    if window:
        yield window


class Repository:
    """A git repository: a work tree or any folder in it, a bare repository, a linked work tree.

    Args:
        path: the repository, a folder in it, or its ``.git``.

    Attributes:
        path: as given.
        shallow: whether history ends early because the clone is shallow.

    Raises:
        InputError: it is no repository, or git is missing or fails.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        folder = self.path.parent if _is_git_file(self.path) else self.path
        if not folder.is_dir():
            raise InputError(f"{self.path}: no such directory")
        outside = Git(folder)
        found, stderr = outside.attempt("rev-parse", "--absolute-git-dir")
        if found is None:
            if "not a git repository" in stderr:
                raise InputError(f"{self.path} is not a git repository or inside one")
            raise outside.failure("rev-parse", stderr)
        git_dir = Path(os.fsdecode(found.removesuffix(b"\n")))
        self._top = _work_tree(outside, folder)
        self.git = Git(git_dir, git_dir)
        _refuse_outside(self.git, git_dir, self._top)
        said_of = self.git.run("rev-parse", "--is-shallow-repository", "--show-object-format")
        shallow, self._hash = said_of.decode().split()
        self.shallow = shallow == "true"
        self._objects = _Objects(self.git)
        self._commits: dict[str, Commit] = {}

    def resolve(self, rev: str = "HEAD") -> Commit:
        """The commit that a revision names: a branch, a tag, a hash, ``HEAD~2``.

        Raises:
            InputError: there is no such commit.
        """
        if not rev or rev.startswith("-") or "\0" in rev:
            raise InputError(f"{self.path}: {rev!r} is not a revision")
        if rev in self._commits:  # by their hashes, which name nothing else
            return self._commits[rev]
        found, _ = self.git.attempt(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"
        )
        if found is None:
            raise self._unknown(rev)
        name = found.decode().strip()
        kind, content = self._objects.one(name)
        if kind != "commit":
            raise InputError(f"{self.path}: {rev} does not name a commit")
        return self._commits.setdefault(name, _commit(name, content))

    def _unknown(self, rev: str) -> InputError:
        """Why a revision does not resolve."""
        if not self.git.run("for-each-ref", "--count=1"):
            found, _ = self.git.attempt("rev-parse", "--verify", "--quiet", "HEAD")
            if found is None:
                return InputError(f"{self.path}: the repository has no commits yet")
        hint = (
            "; the clone is shallow: run `git fetch --unshallow` to get older commits"
            if self.shallow
            else "; pass a branch, a tag or a commit of this clone"
        )
        return InputError(f"{self.path}: unknown revision {rev!r}{hint}")

    def snapshot(self, rev: str = "HEAD") -> Snapshot:
        """The files of a commit.

        Raises:
            InputError: there is no such commit, or its trees are not in this clone.
        """
        commit = self.resolve(rev)
        listing = self.git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit.id)
        files, submodules = tuple(_entries(listing)), tuple(_submodules(listing))
        return Snapshot(commit, files, self._objects.read, submodules)

    def working_tree(self) -> Snapshot:
        """The files as they lie in the work tree: tracked ones with their changes, and new ones
        that are not ignored.

        Blob hashes are those that git gives to the bytes as they are, without its conversions.

        Raises:
            InputError: there is no work tree or no commit, or a file cannot be read.
        """
        if self._top is None:
            raise InputError(f"{self.path} has no working tree; pass a revision")
        commit = self.resolve("HEAD")
        git = Git(self._top, self.git.folder, self._top)
        listing = git.run(
            "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name"
        )
        disk = _Disk(self._top, self._hash)
        paths = sorted(set(listing.split(b"\0")) - {b""})
        files = [file for path in paths if (file := disk.file(path)) is not None]
        submodules = tuple(_submodules(git.run("ls-files", "-z", "--stage", "--full-name")))
        return Snapshot(commit, tuple(files), disk.read, submodules)


def _refuse_outside(git: Git, git_dir: Path, top: Path | None) -> None:
    """Where only some directories may be read, git too may read only these.

    Its own folder may be shared with another work tree, borrow objects from other repositories
    (``objects/info/alternates``) and have links.

    Raises:
        InputError: it would read elsewhere.
    """
    access = current()
    if access.roots is None:
        return
    common = Path(os.fsdecode(git.run("rev-parse", "--git-common-dir").removesuffix(b"\n")))
    waiting = [git_dir, git_dir / common, *([top] if top else [])]
    known: set[Path] = set()
    try:
        while waiting:
            place = access.resolve(waiting.pop())
            if place in known or place == top:
                continue
            known.add(place)
            for folder, folders, names in os.walk(place):
                for name in (*folders, *names):
                    access.resolve(os.path.join(folder, name))
            for store in (place, place / "objects"):
                waiting += (store / line for line in _alternates(store))
    except OSError as error:
        where = error.filename or git_dir
        raise InputError(f"{where} cannot be read: {error.strerror}") from error


def _alternates(store: Path) -> list[str]:
    """The stores of objects that one borrows from (gitrepository-layout(5))."""
    try:
        with open_file(store / "info" / "alternates") as stream:
            lines = os.fsdecode(stream.read()).splitlines()
    except FileNotFoundError:
        return []
    return [line.strip().strip('"') for line in lines if line.strip() and line[0] != "#"]


def _is_git_file(path: Path) -> bool:
    return path.name == ".git" and path.is_file()


def _work_tree(git: Git, folder: Path) -> Path | None:
    """The top of the work tree around a folder.

    A configuration can name any other folder as the work tree; that would read what the user never
    named, so it counts as none.
    """
    found, _ = git.attempt("rev-parse", "--show-toplevel")
    if not found:
        return None
    top = Path(os.fsdecode(found.removesuffix(b"\n")))
    return top if folder.resolve().is_relative_to(top.resolve()) else None


def _commit(name: str, content: bytes) -> Commit:
    parents = []
    time = 0
    for line in content.partition(b"\n\n")[0].split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"parent":
            parents.append(value.decode())
        elif key == b"committer":
            time = _time(value)
    return Commit(name, time, tuple(parents))


def _time(signature: bytes) -> int:
    """The seconds of ``name <mail> seconds zone``; 0 where a tool wrote nonsense."""
    fields = signature.rpartition(b">")[2].split()
    return int(fields[0]) if fields and fields[0].isdigit() else 0


def _entries(listing: bytes) -> Iterator[File]:
    """The regular files of ``ls-tree -l -z``."""
    for entry in listing.split(b"\0"):
        if entry.startswith(b"100"):
            facts, _, path = entry.partition(b"\t")
            _, _, blob, size = facts.split()
            # The size of a missing blob is a word; reading the blob says what is wrong.
            length = int(size) if size.isdigit() else 0
            yield File(path.decode("utf-8", "surrogateescape"), blob.decode(), length)


def _submodules(listing: bytes) -> Iterator[str]:
    """The submodules of ``ls-tree -z`` or ``ls-files -z --stage``."""
    for entry in listing.split(b"\0"):
        if entry.startswith(b"160000 "):
            yield entry.partition(b"\t")[2].decode("utf-8", "surrogateescape")


class _Objects:
    """Objects by their hash, from one long-lived child."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None

    def one(self, name: str) -> tuple[str, bytes]:
        """The type and the content of one object.

        Raises:
            InputError: it is missing.
        """
        with self._lock:
            self._ask([name])
            return self._answer(name, name)

    def read(self, files: Sequence[File]) -> Iterator[tuple[File, bytes]]:
        """The content of a window of files.

        Raises:
            InputError: one is missing.
        """
        with self._lock:
            self._ask([file.blob for file in files])
            found = [(file, self._answer(file.blob, file.path)[1]) for file in files]
        yield from found

    def _ask(self, names: Sequence[str]) -> None:
        if self._child is None or self._child.poll() is not None:
            self._complaints = TemporaryFile()  # noqa: SIM115 - lives as long as the child
            self._child = self._git.start(("cat-file", "--batch"), self._complaints)
            finalize(self, _end, self._child, self._complaints)
        pipe = cast("IO[bytes]", self._child.stdin)
        try:
            pipe.write("".join(f"{name}\n" for name in names).encode())
            pipe.flush()
        except OSError as error:
            raise self._died() from error

    def _answer(self, name: str, what: str) -> tuple[str, bytes]:
        child = cast("subprocess.Popen[bytes]", self._child)
        pipe = cast("IO[bytes]", child.stdout)
        head = pipe.readline().split()
        if len(head) != 3:
            if not head:
                raise self._died(what)
            self._restart()
            raise MissingObjectError(f"{self._git.folder}: {what}: object {name}: {MISSING_ADVICE}")
        size = int(head[2])
        content = pipe.read(size + 1)
        if len(content) != size + 1:
            raise self._died(what)
        return head[1].decode(), content[:-1]

    def _died(self, what: str = "") -> InputError:
        stderr = complaint(self._complaints) if self._complaints else ""
        self._restart()
        error = self._git.failure("cat-file", stderr)
        return InputError(f"{what}: {error}") if what else error

    def _restart(self) -> None:
        """Forgets the child: answers to what was asked of it would come for the next question."""
        if self._child is not None and self._complaints is not None:
            _end(self._child, self._complaints)
        self._child = self._complaints = None


def _end(child: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout, complaints):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # what was still to be written goes nowhere
                continue


class _Disk:
    """The files of a work tree, as they lie there.

    Args:
        top: the work tree.
        algorithm: git's hash, ``sha1`` or ``sha256``.
    """

    def __init__(self, top: Path, algorithm: str) -> None:
        self._top = os.fsencode(top)
        self._real = os.path.realpath(self._top)
        self._algorithm = algorithm
        self._inside: dict[bytes, bool] = {}

    def file(self, path: bytes) -> File | None:
        """The file at a path; None when there is no regular file, or only outside the tree."""
        folder = os.path.dirname(path)
        if folder not in self._inside:
            real = os.path.realpath(os.path.join(self._real, folder))
            self._inside[folder] = real == os.path.normpath(os.path.join(self._real, folder))
        if not self._inside[folder]:
            return None
        try:
            status = os.lstat(os.path.join(self._top, path))
            if not stat.S_ISREG(status.st_mode):
                return None
            content = self._content(path) if status.st_size <= LARGEST_BYTES else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        name = path.decode("utf-8", "surrogateescape")
        if content is None:
            return File(name, "", status.st_size)
        return File(name, self._blob(content), len(content))

    def read(self, files: Sequence[File]) -> Iterator[tuple[File, bytes]]:
        """The content of files.

        Raises:
            InputError: one cannot be read or is no longer what was listed.
        """
        for file in files:
            path = file.path.encode("utf-8", "surrogateescape")
            try:
                content = self._content(path)
            except OSError as error:
                raise _unreadable(path, error) from error
            if self._blob(content) != file.blob:
                raise InputError(f"{file.path}: changed while it was being read; try again")
            yield file, content

    def _content(self, path: bytes) -> bytes:
        # Neither follow a link nor wait for a pipe that has taken the file's place meanwhile.
        flags = os.O_RDONLY | NO_FOLLOW | NON_BLOCKING | BINARY
        with open(os.open(os.path.join(self._top, path), flags), "rb") as stream:
            return stream.read(LARGEST_BYTES + 1)

    def _blob(self, content: bytes) -> str:
        digest = hashlib.new(self._algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest()


def _unreadable(path: bytes, error: OSError) -> InputError:
    name = path.decode("utf-8", "replace")
    return InputError(f"{name} cannot be read: {error.strerror or error}")
