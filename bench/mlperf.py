"""Logs of multi-node training runs that ended well: the results of MLPerf Training v2.1.

They are read from the git objects of a clone of mlcommons/training_results_v2.1.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from rivals.sources import commit

from epochzero.logs.source import Log

__all__ = ["MlperfLogs", "reached_target"]

_LOG = re.compile(r"/result_\d+\.txt$")
_SUCCESS = re.compile(rb'"key": "run_stop".*"status": "success"')


def reached_target(log: Log) -> bool:
    """Whether the log says that the run succeeded.

    A few runs of the round did not reach the target accuracy, or their log is cut.
    """
    return _SUCCESS.search(log.text) is not None


class MlperfLogs:
    """The result logs of one submission round.

    Args:
        repository: a clone of mlcommons/training_results_v2.1.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        command = ("git", "-C", str(repository), "ls-tree", "-r", "HEAD")
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = (line.split("\t", 1) for line in listed.splitlines())
        self._blobs = [(path, told.split()[2]) for told, path in rows if _LOG.search(path)]

    def __len__(self) -> int:
        return len(self._blobs)

    def __iter__(self) -> Iterator[Log]:
        command = ("git", "-C", str(self._repository), "cat-file", "--batch")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as git:
            asked, told = cast(BinaryIO, git.stdin), cast(BinaryIO, git.stdout)
            for path, blob in self._blobs:
                asked.write(f"{blob}\n".encode())
                asked.flush()
                size = int(told.readline().split()[2])
                yield Log(path, text=told.read(size))
                told.read(1)
            asked.close()

    def described(self) -> Mapping[str, object]:
        """What a result file says of them."""
        return {
            "name": "mlcommons/training_results_v2.1: result_*.txt",
            "commit": commit(self._repository),
            "records": len(self),
        }
