"""The deterministic stages of NVRx's restart agent (NVIDIA/nvidia-resiliency-ext), no model.

It reads one log and names a primary failure with its line and rank. Several logs of one job are
given to it one after the other in one file. It names no category, and is meant for attempts that
failed; a primary failure that it marks as recovered or followed by progress is not counted as one.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epochzero.logs.source import Log
from rivals import Answer, lines_of
from rivals.sources import commit, export

__all__ = ["Nvrx"]

_SURVIVED = ("recovered", "progressed_after")


class Nvrx:
    """NVRx's primary failure.

    Args:
        repository: a clone of NVIDIA/nvidia-resiliency-ext.
        workspace: where its sources may be written.
    """

    name = "nvrx"

    def __init__(self, repository: Path, workspace: Path) -> None:
        self.version = commit(repository)
        sys.path.insert(0, str(export(repository, "src", workspace)))
        self._module: Any = importlib.import_module(
            "nvidia_resiliency_ext.attribution.restart_agent"
        )
        self._agent = self._module.RestartAgent()

    def primary(self, path: Path) -> dict[str, Any] | None:
        """The primary failure of one log file."""
        found = self._result(path).primary_failure
        return None if found is None else dict(found)

    def restarts(self, logs: Sequence[Log]) -> bool:
        """Whether it would restart the job after the first failure."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "job.log"
            path.write_bytes("\n".join(line.text for line in lines_of(logs)).encode())
            return bool(self._result(path).decision == "RESTART")

    def _result(self, path: Path) -> Any:
        request = self._module.RestartAgentRequest(log_path=str(path))
        return self._agent.run(request, timeout_seconds=86_400).result

    def answer(self, logs: Sequence[Log], exit_code: int | None = None) -> Answer:
        """What the tool says of the job that wrote ``logs``."""
        lines = lines_of(logs)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "job.log"
            path.write_bytes("\n".join(line.text for line in lines).encode())
            found = self.primary(path)
        if found is None or found["fault_outcome"] in _SURVIVED:
            return Answer(failed=False)
        if not found["line"]:
            return Answer(failed=True)
        line = lines[found["line"] - 1]
        rank = line.rank if found["rank"] is None else int(found["rank"])
        return Answer(True, "", line.file, line.number, line.text, rank)
