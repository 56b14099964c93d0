"""A made project: a repository in which every bug's report names what its fix changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("loader", "trainer", "metrics", "layers", "tokens")


class Project:
    """A clone ``owner+NAME`` with a fix of each of some files, and the records of their bugs."""

    def __init__(self, folder: Path, name: str = "owner+tool") -> None:
        self.name = name
        self.clone = folder / name
        self.clone.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")
        for one in NAMES:
            self._write(one, "x")
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "begin")
        self.parents: list[str] = []
        self.records = [self._fixed(number, one) for number, one in enumerate(NAMES, 1)]

    def reports(self, path: Path, **fields: Any) -> Path:
        """Writes the records; ``fields`` go into each."""
        path.write_text("".join(json.dumps({**one, **fields}) + "\n" for one in self.records))
        return path

    def _fixed(self, number: int, name: str) -> dict[str, Any]:
        self.parents.append(self._git("rev-parse", "HEAD").strip())
        self._write(name, "y")
        self._git("commit", "-q", "-a", "-m", f"fix {name}")
        path = f"{name}.py"
        file = {"change": "MODIFY", "old": path, "new": path, "methods": [{"name": f"run_{name}"}]}
        return {
            "id": f"{self.name}#{number}",
            "project": self.name,
            "opened": "2024-01-02T00:00:00Z",
            "closed": "2024-01-03T00:00:00Z",
            "summary": f"run_{name} returns a wrong value",
            "description": f"`run_{name}` gives x, it should give y.",
            "project_class": ["tool"],
            "label": {"type": "training", "extrinsic": number == 1},
            "fix": {"sha": self._git("rev-parse", "HEAD").strip(), "files": [file]},
        }

    def _write(self, name: str, value: str) -> None:
        code = f"def run_{name}(x, y):\n    if x:\n        return {value}\n    return None\n"
        (self.clone / f"{name}.py").write_text(code)

    def _git(self, *arguments: str) -> str:
        when = "2024-01-01T00:00:00 +0000"
        person = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        return subprocess.run(
            ["git", *arguments], cwd=self.clone, check=True, capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", **person, **dates},
        ).stdout  # fmt: skip
