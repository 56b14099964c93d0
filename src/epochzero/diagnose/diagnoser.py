"""`Diagnoser` holds the expensive parts, the catalogue and the scanner, and diagnoses any number of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from epochzero.diagnose.catalog import Catalog, Signature, builtin
from epochzero.diagnose.ending import absence, earlier_failures
from epochzero.diagnose.explanation import hint
from epochzero.diagnose.facts import Facts, find_facts
from epochzero.diagnose.model import CodeFrame, Consequence, Diagnosis, ExceptionInfo, Root
from epochzero.diagnose.reading import prepare
from epochzero.diagnose.root_cause import WAITED
from epochzero.diagnose.similar_paths import nearest_path
from epochzero.diagnose.timeline import Timeline, order
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
    """The content of one log of a job, before it is combined with the other logs.

    Attributes:
        name: of the log.
        events: its errors, in order.
        blank: whether it contains no readable text.
        work: what it shows that the job did.
        restarts: number of restarts by the launcher before this log started.
        damage: messages about parts that could not be read.
        notes: messages about skipped parts.
        tail: its last bytes.
        named_rank: the only rank that its text names.
    """

    name: str
    events: tuple[LogEvent, ...]
    blank: bool
    work: frozenset[str]
    restarts: int
    damage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tail: bytes = b""
    named_rank: int | None = None


class Diagnoser:
    """Diagnoses jobs with one catalogue of signatures.

    Args:
        catalog: the signatures; None for those of the package.
        redact: redact tokens, keys and passwords in the results.
        look_around: if a path is missing, search for a similar one on this machine. Not for a
            server, because the result would reveal its files to the sender of the log.
    """

    def __init__(
        self, catalog: Catalog | None = None, *, redact: bool = True, look_around: bool = False
    ) -> None:
        self.catalog = builtin() if catalog is None else catalog
        self.redact = redact
        self.look_around = look_around
        self._scanner = Scanner(tuple(self.catalog.anchors))

    def prepare(self) -> Diagnoser:
        """Loads everything in advance; saves time for many diagnoses, but costs a second. Returns itself."""
        prepare()
        return self

    def diagnose(self, logs: Sequence[Log], facts: Facts = NO_FACTS) -> Diagnosis:
        """The diagnosis of one job.

        Args:
            logs: all logs of the job, of every rank.
            facts: known facts in addition to the logs.

        Raises:
            InputError: a log cannot be read, or is not text.
        """
        return self.conclude([self.read(log) for log in logs], facts)

    def read(self, log: Log) -> LogRead:
        """Reads one log of a job; several processes can read the logs of a large job.

        Raises:
            InputError: the log cannot be read, or is not text.
        """
        return self._read(log, self._scanner.scan(log))

    def read_part(
        self, stream: BinaryIO, size: int, starts: Sequence[int], number: int
    ) -> PartScan | None:
        """Reads a part of a large log; several processes can read the parts.

        Args:
            stream, size, starts, number: as for `epochzero.logs.parts.scan_part`.

        Returns:
            None if so much is found that the log must be read in one pass.
        """
        return scan_part(self._scanner, stream, size, starts, number)

    def join(self, log: Log, parts: Sequence[PartScan], size: int) -> LogRead | None:
        """Joins the parts of a large log to the result of `read`.

        Args:
            log: the log; its bytes are not read.
            parts: all of them, in order.
            size: of the log, in bytes.

        Returns:
            None if so much was found that the log must be read in one pass.

        Raises:
            InputError: the log is not text.
        """
        scan = join_parts(self._scanner, parts, size)
        return self._read(log, scan) if scan else None

    def _read(self, log: Log, scan: Scan) -> LogRead:
        if looks_binary(scan.head):
            raise InputError(f"{log.name} is not a text log; it appears to be a binary file")
        events = tuple(events_of(log, scan, self._scanner.anchors))
        return LogRead(
            name=log.name,
            events=events,
            blank=scan.blank,
            work=frozenset(scan.work),
            restarts=log.restarts,
            damage=tuple(f"{log.name}: {sentence}" for sentence in scan.damage),
            tail=scan.tail,
            named_rank=scan.named_rank,
            notes=(f"{log.name}: {scan.nuls:,} NUL bytes skipped",) if scan.nuls else (),
        )

    def conclude(self, reads: Sequence[LogRead], facts: Facts = NO_FACTS) -> Diagnosis:
        """The diagnosis of one job from the contents of all its logs."""
        events = [event for read in reads for event in read.events]
        if facts.message:
            events += self.read(Log(SCHEDULER, text=facts.message.encode())).events
        job = JobContext(
            source=tuple(read.name for read in reads),
            facts=facts,
            work={read.name: read.work for read in reads},
            empty=all(read.blank for read in reads),
            incomplete=any(read.damage for read in reads),
            tails=tuple(read.tail for read in reads),
            ranks={read.name: read.named_rank for read in reads},
        )
        restarts = max((read.restarts for read in reads), default=0)
        timeline = order(events, self.catalog, failed=bool(facts.exit_status), restarts=restarts)
        notes = tuple(note for read in reads for note in (*read.damage, *read.notes))
        notes = (*notes, *earlier_failures(timeline), *hint(timeline.root, timeline.judged))
        notes = (*notes, *facts.notes)
        found = _with_absent_rank(replace(verdict(timeline, job), notes=notes), timeline)
        if self.look_around and found.category == "path_not_found":
            found = _with_nearest_path(found)
        return _redacted(found) if self.redact else found


def diagnose(
    *paths: str | Path,
    facts: Facts | None = None,
    signatures: Iterable[Signature] = (),
    redact: bool = True,
) -> Diagnosis:
    """Finds why a job failed.

    Args:
        paths: files, or directories of rank files; all belong to one job.
        facts: exit code and other facts; if None, they are searched for next to the logs.
        signatures: to use in addition to those of the package.
        redact: redact tokens, keys and passwords.

    Raises:
        InputError: a path does not exist, cannot be read, or contains no logs.
    """
    given = [Path(path) for path in paths]
    diagnoser = Diagnoser(builtin() | Catalog(signatures), redact=redact, look_around=True)
    return diagnoser.diagnose(find_logs(given), find_facts(given) if facts is None else facts)


def _with_absent_rank(found: Diagnosis, timeline: Timeline) -> Diagnosis:
    """The diagnosis with the rank for which all others waited, instead of the advice to search for it."""
    absent = absence(timeline)
    if absent and found.signature == WAITED:
        return replace(found, fixes=(*absent, *found.fixes[1:]))
    return replace(found, notes=(*absent, *found.notes))


_QUOTED_PATH = re.compile(r"['\"](/[^'\"\n]{2,400})['\"]|(/[^\s:'\"]{2,400})")


def _with_nearest_path(found: Diagnosis) -> Diagnosis:
    """The diagnosis with the path that was probably intended as the first fix."""
    for quoted, bare in _QUOTED_PATH.findall(found.root.text if found.root else ""):
        if near := nearest_path(quoted or bare):
            return replace(
                found, fixes=(f"Use {near}, which exists; {quoted or bare} does not.", *found.fixes)
            )
    return found


def _redacted(found: Diagnosis) -> Diagnosis:
    """The diagnosis with everything from the log redacted."""
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
    """``value`` with these fields; ``value`` itself if they are equal, because most logs contain no secret."""
    if all(getattr(value, name) == field for name, field in fields.items()):
        return value
    return replace(value, **fields)
