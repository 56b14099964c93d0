"""A repository at a revision: its files, what is in them, and how they came to be.

>>> from epochzero.code import Repository, parse_snapshot
>>> snapshot = Repository(".").snapshot("HEAD")         # doctest: +SKIP
>>> parsed = parse_snapshot(snapshot, snapshot.files)   # doctest: +SKIP

One file is taken apart by `epochzero.code.parse.parse`; `epochzero.code.words` has the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.code.cache import Cache, Key, parse_snapshot
    from epochzero.code.changes import Change, Changes
    from epochzero.code.history import MOST_CHANGES, History
    from epochzero.code.languages import is_test, is_vendored, language_of
    from epochzero.code.parsed import FIELDS, BagTable, Call, Import, Parsed, Unit
    from epochzero.code.snapshot import LARGEST_BYTES, Commit, File, Repository, Snapshot
    from epochzero.code.words import Bag

# Reading a commit with git needs neither NumPy nor a parser.
_ROOMS = {
    "epochzero.code.cache": ("Cache", "Key", "parse_snapshot"),
    "epochzero.code.changes": ("Change", "Changes"),
    "epochzero.code.history": ("MOST_CHANGES", "History"),
    "epochzero.code.languages": ("is_test", "is_vendored", "language_of"),
    "epochzero.code.parsed": ("FIELDS", "BagTable", "Call", "Import", "Parsed", "Unit"),
    "epochzero.code.snapshot": ("LARGEST_BYTES", "Commit", "File", "Repository", "Snapshot"),
    "epochzero.code.words": ("Bag",),
}

export_lazily(__name__, _ROOMS)
