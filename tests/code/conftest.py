"""Real git repositories, made on the spot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class Made:
    """A work tree that a test fills; its clock moves by a minute with each commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = 1_600_000_000
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str | bytes, **extra: str) -> str:
        """Runs git as its author would."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        date = f"{self.clock} +0000"
        mine = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.com",
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
            "GIT_ALLOW_PROTOCOL": "file",
        }
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder,
            env=clean | mine | extra,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str | bytes, content: str | bytes = "text\n") -> Path:
        """Writes a file of the work tree."""
        place = self.folder / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def commit(self, message: str = "change", **extra: str) -> str:
        """Commits everything; the hash."""
        self.clock += 60
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, **extra)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty repository."""
    return Made(tmp_path / "made")
