"""The progress of a dry run, as one line on standard error that is erased at the end."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from epochzero.check.dryrun.records import (
    Record,
    SiteRecord,
    StartRecord,
    TrialRecord,
    VisitRecord,
)
from epochzero.cli.line import bar, shows_progress, write_line

EVERY_S = 0.2


class DryRunProgress:
    """Shows which part of the job is running, for how long, and how many parts have run; only on a terminal."""

    def __init__(self, doing: str = "reading") -> None:
        """Create the display without showing anything.

        Args:
            doing: activity that is shown until the first record.
        """
        self._doing = doing
        self._shown = shows_progress()
        self._began = time.monotonic()
        self._trying = ""
        self._at: dict[int, str] = {}
        self._sites: set[SiteRecord] = set()
        self._reached: set[SiteRecord] = set()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> DryRunProgress:
        if self._shown:
            self._clock.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._over.set()
            self._clock.join()
            write_line("")

    def on_record(self, record: Record) -> None:
        """Handle a record of the run; the records of each mode come from a separate thread."""
        if isinstance(record, StartRecord):
            self._at[threading.get_ident()] = "imports"
        elif isinstance(record, TrialRecord):
            self._trying = f"{record.option} {record.value}: "
        elif isinstance(record, SiteRecord):
            self._sites.add(record)
        elif isinstance(record, VisitRecord):
            self._at[threading.get_ident()] = record.how
            self._reached |= {site for site in list(self._sites) if _contains(site, record)}

    def _tick(self) -> None:
        while not self._over.wait(EVERY_S):
            seconds = time.monotonic() - self._began
            doing = ", ".join(dict.fromkeys(self._at.values())) or self._doing
            share = bar(len(self._reached), len(self._sites)) if self._sites else ""
            write_line(f"{share}{seconds:4.0f} s  {self._trying}{doing}")


def _contains(site: SiteRecord, reached: VisitRecord) -> bool:
    return (site.part, site.path) == (reached.how, reached.path) and (
        site.line <= reached.line <= site.end
    )
