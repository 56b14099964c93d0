"""SWE-bench and collections in its format: a repository, a commit, a patch, and an issue's text.

Jimenez et al.: "SWE-bench: Can Language Models Resolve Real-World GitHub Issues?", ICLR 2024.
"""

from __future__ import annotations

from typing import Any

from epochzero.study.localization.readers.patches import files_of

_NEEDED = ("instance_id", "repo", "base_commit", "patch", "problem_statement")


def read(row: dict[str, Any]) -> dict[str, Any] | str:
    """Return the record of a row, or why there is none. The title is the first line of the issue."""
    if missing := [name for name in _NEEDED if not isinstance(row.get(name), str)]:
        return f"{', '.join(missing)} missing"
    title, _, text = row["problem_statement"].strip().partition("\n")
    return {
        "id": row["instance_id"],
        "project": row["repo"].replace("/", "+"),
        "opened": None,  # `created_at` is when the fix was proposed, and the commit stands before it
        "closed": None,
        "summary": title,
        "description": text,
        "project_class": [],
        "fix": {"parent": row["base_commit"], "files": files_of(row["patch"])},
    }
