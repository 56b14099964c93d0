"""Trainings that are watched from within this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

torch.set_num_threads(1)


class Heard(list[dict[str, Any]]):
    """Records, as they were made."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Those of a kind."""
        return [record for record in self if record["kind"] == kind]


@contextmanager
def watched(
    every: int = 1, path: str | None = None, schedule: Schedule | None = None
) -> Iterator[Heard]:
    """Watches what happens within; nothing may go wrong there."""
    heard = Heard()
    observer = Observer(Records(path, on_record=heard.append), schedule or Schedule(every=every))
    hooks = Hooks(observer)
    hooks.install()
    try:
        yield heard
    finally:
        observer.end()
        hooks.remove()
    assert heard.of("failed") == []
