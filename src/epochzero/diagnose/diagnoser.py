"""`Diagnoser` holds what is expensive to build, the catalogue and the scanner, and diagnoses any number of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from epochzero.diagnose.catalog import Catalog, Signature, builtin
from epochzero.diagnose.facts import Facts, find_facts
from epochzero.diagnose.model import CodeFrame, Consequence, Diagnosis, ExceptionInfo, Root
from epochzero.diagnose.reading import prepare
from epochzero.diagnose.similar_paths import nearest_path
from epochzero.diagnose.timeline import order
from epochzero.diagnose.verdict import JobContext, verdict
from epochzero.errors import InputError
from epochzero.logs.events import LogEvent, events_of
from epochzero.logs.parts import PartScan, join_parts, scan_part
from epochzero.logs.scan import Scan, Scanner
from epochzero.logs.source import Log, find_logs, looks_binary
from epochzero.redact import redact_all

NO_FACTS = Facts()
SCHEDULER = "scheduler"
"""The name under which the scheduler's message on a job stands among its logs."""
_Result = TypeVar("_Result", Diagnosis, Root, ExceptionInfo, CodeFrame, Consequence)


@dataclass(frozen=True, slots=True)
class LogRead:
    """What one log of a job tells, before it is set beside the job's other logs.

    Attributes:
        name: of the log.
        events: what it says went wrong, in order.
        blank: whether nothing is readable in it.
        trained: whether it shows progress.
        restarts: how often the launcher had started the job again before this log began.
        damage: sentences on what could not be read of it.
        notes: sentences on what was left out of it.
        tail: its last bytes.
    """

    name: str
    events: tuple[LogEvent, ...]
    blank: bool
    trained: bool
    restarts: int
    damage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tail: bytes = b""


class Diagnoser:
    """Diagnoses jobs with one catalogue of signatures.

    Args:
        catalog: the signatures; those of the package when None.
        redact: hide tokens, keys and passwords in the results.
        look_around: when a path is missing, look for one like it on this machine. Not for a
            service: what it finds would be told to whoever sent the log.
    """

    def __init__(
        self, catalog: Catalog | None = None, *, redact: bool = True, look_around: bool = False
    ) -> None:
        self.catalog = builtin() if catalog is None else catalog
        self.redact = redact
        self.look_around = look_around
        self._scanner = Scanner(tuple(self.catalog.anchors))

    def prepare(self) -> Diagnoser:
        """Itself, with all made that many diagnoses need; few are quicker without, by a second."""
        prepare()
        return self

    def diagnose(self, logs: Sequence[Log], facts: Facts = NO_FACTS) -> Diagnosis:
        """The diagnosis of one job.

        Args:
            logs: all the logs of the job, of every rank.
            facts: what is known beside them.

        Raises:
            InputError: a log cannot be read, or is no text.
        """
        return self.conclude([self.read(log) for log in logs], facts)

    def read(self, log: Log) -> LogRead:
        """One log of a job; the logs of a large job can be read by several processes.

        Raises:
            InputError: the log cannot be read, or is no text.
        """
        return self._read(log, self._scanner.scan(log))

    def read_part(
        self, stream: BinaryIO, size: int, starts: Sequence[int], number: int
    ) -> PartScan | None:
        """A part of a large log; the parts can be read by several processes.

        Args:
            stream, size, starts, number: as of `epochzero.logs.parts.scan_part`.

        Returns:
            None where so much is found that the log must be read in one go.
        """
        return scan_part(self._scanner, stream, size, starts, number)

    def join(self, log: Log, parts: Sequence[PartScan], size: int) -> LogRead | None:
        """A large log whose parts were read: what `read` would tell of it.

        Args:
            log: the log; its bytes are not needed.
            parts: all of them, in order.
            size: of the log, in bytes.

        Returns:
            None where so much was found that the log must be read in one go.

        Raises:
            InputError: the log is no text.
        """
        scan = join_parts(self._scanner, parts, size)
        return self._read(log, scan) if scan else None

    def _read(self, log: Log, scan: Scan) -> LogRead:
        if looks_binary(scan.head):
            raise InputError(f"{log.name}: not a text log; it appears to be a binary file")
        return LogRead(
            name=log.name,
            events=tuple(events_of(log, scan, self._scanner.anchors)),
            blank=scan.blank,
            trained=scan.progress_blocks > 0,
            restarts=log.restarts,
            damage=tuple(f"{log.name}: {sentence}" for sentence in scan.damage),
            tail=scan.tail,
            notes=(f"{log.name}: {scan.nuls:,} NUL bytes skipped",) if scan.nuls else (),
        )

    def conclude(self, reads: Sequence[LogRead], facts: Facts = NO_FACTS) -> Diagnosis:
        """The diagnosis of one job, of which all logs were read."""
        events = [event for read in reads for event in read.events]
        if facts.message:
            events += self.read(Log(SCHEDULER, text=facts.message.encode())).events
        job = JobContext(
            source=tuple(read.name for read in reads),
            facts=facts,
            trained=any(read.trained for read in reads),
            empty=all(read.blank for read in reads),
            incomplete=any(read.damage for read in reads),
            tails=tuple(read.tail for read in reads),
        )
        restarts = max((read.restarts for read in reads), default=0)
        timeline = order(events, self.catalog, failed=bool(facts.exit_status), restarts=restarts)
        notes = (note for read in reads for note in (*read.damage, *read.notes))
        found = replace(verdict(timeline, job), notes=(*notes, *facts.notes))
        if self.look_around and found.category == "path_not_found":
            found = _with_nearest_path(found)
        return _redacted(found) if self.redact else found


def diagnose(
    *paths: str | Path,
    facts: Facts | None = None,
    signatures: Iterable[Signature] = (),
    redact: bool = True,
) -> Diagnosis:
    """Why the job failed whose logs lie at ``paths``.

    Args:
        paths: files, or folders of rank files; all belong to one job.
        facts: exit code and the like; looked for beside the logs when None.
        signatures: to use in addition to the package's.
        redact: hide tokens, keys and passwords.

    Raises:
        InputError: a path does not exist, cannot be read, or holds no logs.
    """
    given = [Path(path) for path in paths]
    diagnoser = Diagnoser(builtin() | Catalog(signatures), redact=redact, look_around=True)
    return diagnoser.diagnose(find_logs(given), find_facts(given) if facts is None else facts)


_QUOTED_PATH = re.compile(r"['\"](/[^'\"\n]{2,400})['\"]|(/[^\s:'\"]{2,400})")


def _with_nearest_path(found: Diagnosis) -> Diagnosis:
    """The diagnosis with the path that was probably meant, as the first fix."""
    for quoted, bare in _QUOTED_PATH.findall(found.root.text if found.root else ""):
        if near := nearest_path(quoted or bare):
            return replace(
                found, fixes=(f"Use {near}, which exists; {quoted or bare} does not.", *found.fixes)
            )
    return found


def _redacted(found: Diagnosis) -> Diagnosis:
    """The diagnosis with secrets hidden in everything that came from the log."""
    return _changed(
        found,
        root=found.root and _changed(found.root, text=redact_all(found.root.text)),
        exception=found.exception
        and _changed(found.exception, message=redact_all(found.exception.message)),
        user_frame=found.user_frame
        and _changed(found.user_frame, code=redact_all(found.user_frame.code)),
        stack=tuple(_changed(frame, code=redact_all(frame.code)) for frame in found.stack),
        evidence=redact_all(found.evidence),
        cascade=tuple(_changed(c, text=redact_all(c.text)) for c in found.cascade),
        fixes=redact_all(found.fixes),
        notes=redact_all(found.notes),
    )


def _changed(value: _Result, **fields: Any) -> _Result:
    """``value`` with these fields; itself where they are equal, since most logs hold no secret."""
    if all(getattr(value, name) == field for name, field in fields.items()):
        return value
    return replace(value, **fields)
