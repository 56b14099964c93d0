"""Files that earlier jobs of a submission leave for later ones.

Each mode has its own: tensors that are saved on simulated GPUs have no values.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from epochzero.check.dryrun.contain.model import FileChange
from epochzero.check.dryrun.model import Mode, ProvidedFiles
from epochzero.scratch import scratch_directory


class InheritedFiles:
    """The files that jobs have written, and the directory for the next ones.

    Args:
        folder: an empty directory that exists until all jobs of the submission have run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Mode, dict[Path, ProvidedFiles]] = defaultdict(dict)

    @classmethod
    @contextmanager
    def on(cls) -> Iterator[InheritedFiles]:
        """Create the store in a temporary directory, for the duration of the block."""
        with scratch_directory() as folder:
            yield cls(Path(folder))

    def so_far(self, mode: Mode) -> Sequence[ProvidedFiles]:
        """The files of the earlier jobs, directories before their contents."""
        return [made for _, made in sorted(self._made[mode].items())]

    def folder(self) -> Path:
        """A new directory for copies of the files that one run writes."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def take(self, mode: Mode, changes: Iterable[FileChange]) -> None:
        """Store the files that a job has written, without those that it has deleted."""
        for change in changes:
            if change.how == "deleted":
                self._made[mode].pop(change.path, None)
            elif change.kept is not None:
                self._made[mode][change.path] = ProvidedFiles(str(change.kept), str(change.path))
