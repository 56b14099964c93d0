"""BugsInPy: a directory per project with ``project.info``, and in it ``bugs/NUMBER`` with ``bug.info``,
``bug_patch.txt`` and ``run_test.sh``.

Widyasari et al.: "BugsInPy: A Database of Existing Bugs in Python Programs to Enable Controlled Testing
and Debugging Studies", ESEC/FSE 2020. It has no reports: the command that runs the failing tests serves as
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epochzero.study.localization.readers.patches import files_of

_SETTING = re.compile(r'^\s*(\w+)\s*=\s*"?([^"\n]*?)"?\s*$', re.MULTILINE)
_ADDRESS = re.compile(r"github\.com[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


def read(project: Path) -> Iterator[dict[str, Any] | str]:
    """Yield the records of a project's bugs, or why one is unusable.

    Args:
        project: its ``project.info``.
    """
    address = _ADDRESS.search(_settings(project).get("github_url", ""))
    for path in sorted(project.parent.glob("bugs/*/bug.info")):
        yield _bug(path, f"{address[1]}+{address[2]}") if address else "its project has no URL"


def _bug(path: Path, project: str) -> dict[str, Any] | str:
    settings = _settings(path)
    before, fixed = settings.get("buggy_commit_id"), settings.get("fixed_commit_id")
    patch, tests = path.with_name("bug_patch.txt"), path.with_name("run_test.sh")
    if not before or not fixed or not patch.is_file():
        return "its commits or its patch are missing"
    command = tests.read_text("utf-8", "replace").strip() if tests.is_file() else ""
    return {
        "id": f"{project}#bugsinpy-{path.parent.name}",
        "project": project,
        "opened": None,
        "closed": None,
        "summary": f"Failing tests in {settings.get('test_file', '')}".strip(),
        "description": command,
        "project_class": [],
        "fix": {
            "sha": fixed,
            "parent": before,
            "files": files_of(patch.read_text("utf-8", "replace")),
        },
    }


def _settings(path: Path) -> dict[str, str]:
    return dict(_SETTING.findall(path.read_text("utf-8", "replace")))
