"""Reading files of a rival's repository, whether it is a clone with files or a git folder alone."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

__all__ = ["commit", "export", "read"]


def commit(repository: Path) -> str:
    """The commit that is read."""
    return _git(repository, "rev-parse", "HEAD").decode().strip()


def read(repository: Path, path: str) -> bytes:
    """One file at that commit."""
    return _git(repository, "show", f"HEAD:{path}")


def export(repository: Path, path: str, into: Path) -> Path:
    """A folder at that commit, written below ``into`` unless it is there already."""
    target = into / f"source-{commit(repository)[:12]}"
    if not target.exists():
        archive = _git(repository, "archive", "HEAD", path)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(target, filter="data")
    return target / path


def _git(repository: Path, *arguments: str) -> bytes:
    command = ("git", "-C", str(repository), *arguments)
    return subprocess.run(command, check=True, capture_output=True).stdout
