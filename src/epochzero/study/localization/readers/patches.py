"""Files that a patch changes, in the shared format of fixes."""

from __future__ import annotations

import re
from typing import Any

_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_SIDE = re.compile(r'^(---|\+\+\+) "?(?:[ab]/(?P<path>[^\t\n"]+)|/dev/null)', re.MULTILINE)


def files_of(patch: str) -> list[dict[str, Any]]:
    """Return the files of a git patch.

    Args:
        patch: its text. Files without changed content, such as renamed ones, are not in it.
    """
    found: list[dict[str, Any]] = []
    for part in _FILE.split(patch)[1:]:
        head = part.split("\n@@", 1)[0]
        paths = {side["path"] and side[1]: side["path"] for side in _SIDE.finditer(head)}
        old, new = paths.get("---"), paths.get("+++")
        if not old and not new:
            continue
        change = "ADD" if not old else "DELETE" if not new else "MODIFY" if old == new else "RENAME"
        found.append({"change": change, "old": old, "new": new, "methods": []})
    return found
