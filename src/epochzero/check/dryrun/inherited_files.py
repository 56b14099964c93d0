"""What the jobs of one submission leave for those after them: a dry run of one finds the files of another.

Each mode has its own: what is saved on pretended GPUs has no values.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from epochzero.check.dryrun.contain.model import FileChange
from epochzero.check.dryrun.model import Mode, ProvidedFiles


class Handed:
    """The files that jobs have written, and where the next ones are kept.

    Args:
        folder: an empty one that lasts as long as the submission is tried.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Mode, dict[Path, ProvidedFiles]] = defaultdict(dict)

    @classmethod
    @contextmanager
    def on(cls) -> Iterator[Handed]:
        """With a folder of its own, until the end of the block."""
        with tempfile.TemporaryDirectory(prefix="epochzero-") as folder:
            yield cls(Path(folder))

    def so_far(self, mode: Mode) -> Sequence[ProvidedFiles]:
        """What the jobs before have written, folders before what is in them."""
        return [made for _, made in sorted(self._made[mode].items())]

    def folder(self) -> Path:
        """A new folder for copies of what one run writes."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def take(self, mode: Mode, changes: Iterable[FileChange]) -> None:
        """Hand on what a job has written, and not what it has deleted."""
        for change in changes:
            if change.how == "deleted":
                self._made[mode].pop(change.path, None)
            elif change.kept is not None:
                self._made[mode][change.path] = ProvidedFiles(str(change.kept), str(change.path))
