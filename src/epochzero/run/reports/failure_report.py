"""What the tools report of an attempt that failed: why, where in the code, and what a check would report.

None of it may change how the job ended: what a tool raises becomes a `JobEvent`.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from epochzero.errors import EpochZeroError, InputError
from epochzero.run.observers.hangs import HANG_FILE, HUNG
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.journal import Journal, read_journal
from epochzero.run.records.launch import ELASTIC_FOLDER
from epochzero.run.records.model import End, JobEvent, JobProgress, Output, Record, Sample, Start
from epochzero.run.records.output import logs_in

if TYPE_CHECKING:
    from epochzero.check import CheckResult, Target
    from epochzero.code import Cache
    from epochzero.diagnose import Diagnoser, Diagnosis
    from epochzero.locate import Ranking


DUMPS_FOLDER = "flight-recorder"
_MOST_PLACES = 5
_LONG_S = 30.0
_MUCH_OUTPUT = 20_000_000
_KILLED = (128 + signal.SIGKILL, 128 + signal.SIGTERM)
_FAILURE = b"""Traceback (most recent call last):
  File "train.py", line 1, in <module>
KeyError: 'lr'
"""
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class AttemptFiles:
    """What an attempt has left: its logs, how far it came, and what it used."""

    outputs: list[Output] = field(default_factory=list)
    progress: JobProgress | None = None
    samples: list[Sample] = field(default_factory=list)
    first_epoch: float | None = None
    saved: float | None = None
    """Seconds from its start to its last checkpoint."""

    @property
    def epochs(self) -> float:
        """How many it completed at least, whether it counts from 0 or 1."""
        last = self.progress.epoch if self.progress is not None else None
        return 0.0 if last is None or self.first_epoch is None else last - self.first_epoch


def left_by(journal: Journal) -> AttemptFiles:
    """What the journal holds of an attempt; nothing if the job has deleted it."""
    left = AttemptFiles()
    with suppress(InputError):
        for _, record in read_journal(journal.path):
            match record:
                case Output():
                    left.outputs.append(record)
                case JobProgress():
                    before = left.progress.checkpoint if left.progress is not None else ""
                    if record.checkpoint not in ("", before):
                        left.saved = record.elapsed
                    left.progress = record
                    left.first_epoch = (
                        record.epoch if left.first_epoch is None else left.first_epoch
                    )
                case Sample():
                    left.samples.append(record)
    return left


@dataclass(slots=True)
class After:
    """Asks the tools about one attempt that failed, one question a method.

    Each returns None if there is no answer, or if the tool failed, which is then in `events`.
    The tools are loaded when they are asked: a job that succeeds needs none.

    Attributes:
        started, ended: the attempt's first and last record.
        folder: its directory.
        clock: of the attempt.
        environment: of the job.
        state: its final state in the scheduler, real or simulated; empty for none.
        limit: the one that the simulated platform enforced, in words; empty for none.
        events: what was found, and which tools failed.
    """

    started: Start
    ended: End
    folder: Path
    clock: Clock
    environment: Mapping[str, str]
    state: str = ""
    limit: str = ""
    events: list[JobEvent] = field(default_factory=list)
    _checks: list[CheckResult | None] = field(default_factory=list)

    def diagnosis(self, outputs: Sequence[Output]) -> Diagnosis | None:
        """The first cause, from what the attempt wrote."""
        return self._answer("diagnose", lambda: self._diagnosed(outputs))

    def evidence(self, diagnosis: Diagnosis, left: AttemptFiles) -> Mapping[str, str]:
        """What else is known of the failure: facts of `epochzero.run.retry.policy.EVIDENCE`, each with a text."""
        from epochzero.run.retry import local_files, shared_storage, subject, there_now, unseeded

        started, seconds, folder = self.started, self.ended.elapsed, Path(self.started.folder)
        asked: Mapping[str, Callable[[], str]] = {
            "there_now": lambda: there_now(diagnosis, started, left.samples),
            "unseeded": lambda: unseeded(diagnosis, started),
            "environment": lambda: subject(diagnosis, seconds, epochs=left.epochs, folder=folder),
            "shared_storage": lambda: shared_storage(diagnosis, started),
            "local_files": lambda: local_files(diagnosis, started),
        }
        found = {fact: text for fact, ask in asked.items() if (text := self._answer(fact, ask))}
        for fact in found.keys() - {"shared_storage", "local_files"}:
            self.events.append(JobEvent(*self.clock.now(), fact, found[fact]))
        return found

    def ranking(self, diagnosis: Diagnosis, cache: Cache | None = None) -> Ranking | None:
        """Where the bug is in the repository in which the job ran, if it ran in one."""
        return self._answer("locate", lambda: self._located(diagnosis, cache))

    def checked(self, target: Target | str | Path | None = None) -> CheckResult | None:
        """What `check` would report before the start; None also for what is no Python job.

        Args:
            target: the platform that the job was meant for; None for this machine.
        """
        if not self._checks:
            self._checks.append(self._answer("check", lambda: self._checked(target)))
        return self._checks[0]

    def foreseen(self, diagnosis: Diagnosis, target: Target | str | Path | None = None) -> bool:
        """Whether `check` reports an error at a line of the failure's traceback.

        Args:
            diagnosis: of the failure.
            target: as for `checked`.
        """
        result = self.checked(target)
        errors = [f for f in result.findings if f.severity == "error"] if result is not None else []
        folder = Path(self.started.folder)
        failed = {(folder / frame.file, frame.line) for frame in diagnosis.stack}
        return any(
            (folder / finding.place.path, finding.place.line) in failed for finding in errors
        )

    def _answer(self, tool: str, ask: Callable[[], _Answer | None]) -> _Answer | None:
        try:
            return ask()
        except EpochZeroError:
            return None  # The job is nothing for this tool: binary output, no Python, no commit.
        except Exception as error:
            text = f"{tool} failed: {type(error).__name__}: {error}"
            self.events.append(JobEvent(*self.clock.now(), "tool_failed", text))
            return None

    def _diagnosed(self, outputs: Sequence[Output]) -> Diagnosis:
        from epochzero.diagnose import Facts
        from epochzero.logs.source import Log, dump_logs, find_logs

        # A rank's log repeats what stands in the whole one, whose parts have numbers that are no ranks.
        names = next((output.paths for output in outputs if output.name == "output"), None)
        if names is None:  # A full disk had no room for the record.
            names = tuple(part.name for part in logs_in(self.folder).get("output", ()))
        logs = [Log(name, self.folder / name) for name in names]
        elastic = self.folder / ELASTIC_FOLDER
        if any(path.is_file() for path in elastic.rglob("*")):
            logs += (
                # Those in a folder have names within it.
                replace(log, name=(elastic / log.name).relative_to(self.folder).as_posix())
                for log in find_logs([elastic])
            )
        logs += dump_logs(self._flight_dumps())
        started, ended = self.started, self.ended
        hang = self.folder / HANG_FILE
        if hang.exists():
            found = [Log(HANG_FILE, hang)]
            # A job that is interrupted since it hangs fails of the hang, not of the interruption.
            logs = found if ended.why in ("user", "scheduler", HUNG) else [*logs, *found]
        # Who does not end when asked is killed by us, and not for want of memory.
        asked = ended.why in ("user", "scheduler") and ended.signal == signal.SIGKILL
        facts = Facts(
            exit_code=128 + signal.SIGTERM if asked else ended.exit_code,
            signal=signal.SIGTERM if asked else ended.signal,
            state=self.state or ("INTERRUPTED" if ended.why == "user" else None),
            start=started.time,
            end=started.time + ended.elapsed,
            gpus=started.gpus or None,
        )
        if not self.limit or ended.exit_code not in _KILLED:
            return _diagnoser().diagnose(logs, facts)
        # What the job printed before is not why it ended: that is known here.
        killed = _diagnoser().diagnose([Log("output.log", text=b"")], facts)
        return replace(
            killed,
            meaning=f"The simulated platform enforced its limit: {self.limit}.",
            fixes=("Reduce what the job needs, or raise the limit in the target.",),
            retry="fails_again",
            retry_reason="The simulated limit is the same in each attempt.",
        )

    def _flight_dumps(self) -> Sequence[Path]:
        """Copies of the flight-recorder dumps that the ranks of this node wrote during the attempt."""
        from epochzero.logs.flight_recorder import dumps_since

        copies = self.folder / DUMPS_FOLDER
        for dump in dumps_since(self.started.time, Path(self.started.folder), self.environment):
            with suppress(OSError):
                copies.mkdir(exist_ok=True)
                shutil.copyfile(dump, copies / dump.name)
        return sorted(copies.iterdir()) if copies.is_dir() else ()

    def _located(self, diagnosis: Diagnosis, cache: Cache | None) -> Ranking | None:
        from epochzero.code import Repository

        if diagnosis.outcome != "failed" or diagnosis.dimension == "infrastructure":
            return None
        if not (diagnosis.root or diagnosis.exception or diagnosis.stack):
            return None  # Nothing to search by.
        repository = Repository(self.started.folder)
        # Loading it takes longer than finding out that the job ran in no repository.
        from epochzero.locate import locate

        return locate(diagnosis, repository, cache=cache, top=_MOST_PLACES)

    def _checked(self, target: Target | str | Path | None) -> CheckResult:
        from epochzero.check import check

        return check(
            self.started.command,
            target,
            folder=self.started.folder,
            environment=self.environment,
        )


class Preparation(Watcher):
    """A watcher that loads what a diagnosis needs while the job runs: half a second afterwards.

    A short job with little output does without: it may end well, and its log is soon read.
    """

    def __init__(self) -> None:
        self._prepared = False

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """Much output may be over before the next tick."""
        if not self._prepared and _size(self._folder) > _MUCH_OUTPUT:
            self._prepare()
        return ()

    def tick(self) -> Iterable[Record]:
        """A job that has run for long is worth it."""
        if not self._prepared and self._clock.now()[1] > _LONG_S:
            self._prepare()
        return ()

    def _prepare(self) -> None:
        """Diagnoses a failure, for what is loaded by that."""
        from epochzero.logs.source import Log

        self._prepared = True
        _diagnoser().diagnose([Log("output.log", text=_FAILURE)])


def _size(folder: Path) -> int:
    """Bytes of all output; 0 while a part is replaced by another."""
    with suppress(OSError):
        return sum(part.stat().st_size for part in logs_in(folder).get("output", ()))
    return 0


@cache
def _diagnoser() -> Diagnoser:
    from epochzero.diagnose import Diagnoser

    return Diagnoser(look_around=True)
