"""Puts files where the job will look for them: data that are made, what jobs before it have written.

They go with the view that holds all writes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from epochzero.check.dryrun.child.emit import RecordPipe


def put(made: Sequence[tuple[str, str]], records: RecordPipe) -> None:
    """Copy each file or folder to its path; what cannot be put there is reported.

    Args:
        made: pairs of where it lies and where it is wanted, both absolute; an empty folder lies nowhere.
        records: take what could not be done.
    """
    for source, path in made:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not source:
                os.makedirs(path, exist_ok=True)
            elif os.path.isdir(source):
                shutil.copytree(source, path, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, path)
        except OSError as error:
            what = f"{path} does not exist in the dry run: it cannot be created: {error.strerror}"
            records.emit("assumed", what=what)
