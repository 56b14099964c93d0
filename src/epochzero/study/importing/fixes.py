"""Changes of a commit in the shared format of fixes: files, and the functions within them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from epochzero.code import Repository, Unit, is_test, language_of
from epochzero.code.parse import parse
from epochzero.study.importing.links import CandidateCommit

_CHANGES = {"A": "ADD", "D": "DELETE", "M": "MODIFY", "R": "RENAME", "T": "MODIFY"}
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NOTHING = "0" * 40
_NO_CODE = frozenset(("binary", "generated", "text"))
LARGEST_BYTES = 1 << 20
"""Functions are not searched for in larger files."""


@dataclass(slots=True)
class Changed:
    """A file that a commit changed.

    Attributes:
        change: ``ADD``, ``DELETE``, ``MODIFY`` or ``RENAME``.
        old, new: its paths before and after; None if it did not or does not exist.
        old_blob, new_blob: its content before and after.
        added, deleted: changed lines, from 1, in the file after and before.
    """

    change: str
    old: str | None
    new: str | None
    old_blob: str
    new_blob: str
    added: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Its path after the commit, or before if it was deleted."""
        return self.new or self.old or ""


def is_code(path: str) -> bool:
    """Whether a path can contain a fix: source code that is not a test."""
    return language_of(path) not in _NO_CODE and not is_test(path)


def changed_by(repository: Repository, commit: CandidateCommit) -> list[Changed]:
    """Return the files that a commit changed relative to its first parent.

    Raises:
        InputError: git failed, for example because objects are missing.
    """
    trees = (f"{commit.sha}^1", commit.sha) if commit.parents else ("--root", commit.sha)
    output = repository.git.run(
        "diff-tree", "-r", "-M", "-z", "--raw", "-p", "-U0", "--no-commit-id", "--full-index",
        "--no-abbrev", "--no-ext-diff", "--no-textconv", *trees,
    )  # fmt: skip
    raw, patches = _divided(output)
    files = list(_files(raw))
    sections = re.split(rb"^diff --git [^\n]*\n", patches, flags=re.MULTILINE)[1:]
    if len(sections) == len(files):
        for file, patch in zip(files, sections, strict=True):
            _note_lines(file, patch)
    return files


def fix_record(
    repository: Repository, commit: CandidateCommit, files: Sequence[Changed]
) -> dict[str, Any]:
    """Return the fix in the shared format."""
    return {
        "sha": commit.sha,
        "date": datetime.fromtimestamp(commit.time, UTC).isoformat(sep=" "),
        "files": [_file_record(repository, file) for file in files],
    }


def _divided(output: bytes) -> tuple[list[str], bytes]:
    """Split the output into the fields of the raw lines and the patches after them."""
    fields: list[str] = []
    at = 0
    while output[at : at + 1] == b":":
        # :mode mode blob blob status, then one path, or two of a rename.
        for _ in range(
            3 if output[: output.index(b"\0", at)].rpartition(b" ")[2][:1] in b"RC" else 2
        ):
            end = output.index(b"\0", at)
            fields.append(output[at:end].decode("utf-8", "surrogateescape"))
            at = end + 1
    return fields, output[at:].lstrip(b"\0")


def _files(fields: Sequence[str]) -> Iterator[Changed]:
    rest = iter(fields)
    for head in rest:
        _, _, old_blob, new_blob, status = head.split(" ")
        old = new = next(rest)
        if status[0] in "RC":
            new = next(rest)
        change = _CHANGES.get(status[0], "MODIFY")
        yield Changed(
            change,
            None if change == "ADD" else old,
            None if change == "DELETE" else new,
            old_blob,
            new_blob,
        )


def _note_lines(file: Changed, patch: bytes) -> None:
    for line in patch.split(b"\n"):
        if match := _HUNK.match(line):
            start, count, new_start, new_count = (
                int(group) if group else 1 for group in match.groups()
            )
            file.deleted.extend(range(start, start + count))
            file.added.extend(range(new_start, new_start + new_count))


def _file_record(repository: Repository, file: Changed) -> dict[str, Any]:
    methods: dict[str, dict[str, Any]] = {}
    outside: dict[str, list[int]] = defaultdict(list)
    for kind, lines, path, blob in (
        ("added", file.added, file.new, file.new_blob),
        ("deleted", file.deleted, file.old, file.old_blob),
    ):
        functions = _functions(repository, path, blob) if lines else ()
        for line in lines:
            unit = next(
                (
                    function
                    for function in reversed(functions)
                    if function.start <= line <= function.end
                ),
                None,
            )
            if unit is None:
                outside[kind].append(line)
                continue
            method = methods.setdefault(
                unit.qualified,
                {
                    "name": unit.name,
                    "start": unit.start,
                    "end": unit.end,
                    "added": [],
                    "deleted": [],
                },
            )
            method[kind].append(line)
    return {
        "change": file.change,
        "old": file.old,
        "new": file.new,
        "methods": list(methods.values()),
        "added": outside["added"],
        "deleted": outside["deleted"],
    }


def _functions(repository: Repository, path: str | None, blob: str) -> Sequence[Unit]:
    """Return functions and methods of a file, outer ones first."""
    if path is None or blob == _NOTHING or language_of(path) in _NO_CODE:
        return ()
    data, _ = repository.git.attempt("cat-file", "blob", blob)
    if data is None or len(data) > LARGEST_BYTES:
        return ()
    return [unit for unit in parse(data, path).units if unit.kind != "class"]
