"""Tasks of srun that failed while srun lets the others go on.

They are no children of this process, so that only srun's messages report them. Source: srun(1), --kill-on-bad-exit
and --wait: by default the other tasks go on until they end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from epochzero.run.process.watcher import Watcher
from epochzero.run.records.model import JobEvent, Record

_FAILED = re.compile(
    rb"srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>[\d,\[\]-]+): "
    rb"(?P<how>Exited with exit code \d+|Segmentation fault|Killed|Aborted|Bus error|Out Of Memory)"
)
_GOES_ON_S = 20.0
"""Ranks that lose a peer by themselves fail within seconds."""


class LostTaskWatcher(Watcher):
    """A watcher that reports when a task of srun has failed and the job continues without it."""

    def __init__(self, on_event: Callable[[JobEvent], object] = lambda _: None) -> None:
        """Nothing has failed yet.

        Args:
            on_event: is called with the report, from the watcher's thread.
        """
        self._on_event = on_event
        self._rest = b""
        self._lost: tuple[str, str, str] | None = None
        self._report_at = 0.0

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Reads srun's messages; the first failed task counts."""
        if self._report_at:
            return ()
        found = _FAILED.search(self._rest + data)
        self._rest = (self._rest + data)[-200:]
        if found is not None:
            node, tasks, how = (found[group].decode() for group in ("node", "tasks", "how"))
            self._lost = node, tasks, how[0].lower() + how[1:]
            self._report_at = self._clock.now()[1] + _GOES_ON_S
        return ()

    def tick(self) -> Iterator[Record]:
        """Reports once, if the job still runs."""
        if self._lost is None or self._clock.now()[1] < self._report_at:
            return
        (node, tasks, how), self._lost = self._lost, None
        text = f"task {tasks} on {node}: {how}, and srun lets the other tasks continue; `srun --kill-on-bad-exit=1` terminates them"
        event = JobEvent(
            *self._clock.now(), "task_lost", text, rank=int(tasks) if tasks.isdigit() else None
        )
        self._on_event(event)
        yield event
