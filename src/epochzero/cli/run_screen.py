"""What `epochzero run` prints on standard error while a job runs and when it has exited."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli import layout, render_run, render_watch
from epochzero.cli.store_options import store_address
from epochzero.errors import InputError
from epochzero.run.job import FailedAttempt, Listener, PlannedJob
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import JobEvent
from epochzero.run.replay.capture import has_capture
from epochzero.run.reports.notifications import Webhook
from epochzero.run.watch.live import News, TrainingWatcher
from epochzero.store.journal_import import StoreWatcher

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.locate import Ranking
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.reports.upload import Destination, UploadWatcher
    from epochzero.run.simulate.model import Aspect


_SHORT_S = 5.0


class RunScreen(Listener):
    """Report the events of a run on standard error, and store them."""

    def __init__(
        self,
        job: PlannedJob,
        store: str | None,
        send: Destination | None,
        webhook: Webhook | None,
        *,
        quiet: bool,
    ) -> None:
        self._job = job
        self._store = store
        self._send = send
        self._webhook = webhook
        self._quiet = quiet
        self._recording: StoreWatcher | None = None
        self._sending: UploadWatcher | None = None
        self._has_own_store = store is not None
        self._job_is_kept = False
        self._knows_more = False
        self._began = time.monotonic()

    def begins(self, journal: Journal | None) -> Sequence[Watcher]:
        """See `epochzero.run.job.Listener`."""
        self._began = time.monotonic()
        if journal is None:
            return ()
        self._job_is_kept = True
        watchers: list[Watcher] = []
        # Without SQLAlchemy, the default store imports the job later; another one reports what is missing.
        if self._has_own_store or find_spec("sqlalchemy") is not None:
            address = store_address(self._store, journal.path.parents[3])
            self._recording = StoreWatcher(address, journal.path)
            watchers.append(self._recording)
        if self._send is not None:
            from epochzero.run.reports.upload import UploadWatcher

            self._sending = UploadWatcher(self._send, journal.path.parent)
            watchers.append(self._sending)
        return watchers

    def failed(self, failed: FailedAttempt) -> None:
        """Print the screen about a failure as soon as it is known."""
        self._knows_more = failed.ended.why != "not_started"
        if not self._quiet:
            say(render_run.closing(failed))
        self._tell(render_run.failed(failed))
        if failed.decision is not None:
            self._tell(render_run.decided(failed.decision, self._job, failed.ended))
        if (
            failed.decision is None
            or failed.decision.action == "stop"
            or not self._job.starts_again(failed.ended)
        ):
            self._announce(failed)

    def _announce(self, failed: FailedAttempt) -> None:
        """Write a container's termination log and notify the webhook; errors do not change how the job ended."""
        from epochzero.run.reports.end_summary import notice_of, write_termination_log

        diagnosis = failed.diagnosis.to_dict() if failed.diagnosis is not None else None
        notice = notice_of(failed.started, failed.ended, diagnosis, failed.decision, failed.fault)
        write_termination_log(notice)
        if self._webhook is None or notice.state != "failed":
            return
        try:
            self._webhook.notify(notice)
        except InputError as error:
            _record_problem(failed, str(error))
            if not self._quiet:
                say(str(error))

    def explained(self, ranking: Ranking | None, checked: CheckResult | None) -> None:
        """Print the results that take longer: the ranking of files and the check."""
        self._tell(render_run.explained(ranking, checked))

    def noted(self, event: JobEvent) -> None:
        """Report it if a requested note could not be written."""
        if event.what == "note_failed" and not self._quiet:
            say(event.text)

    def found(self, news: News) -> None:
        """Print a training fault."""
        self._interject(render_watch.found(news))

    def hung(self, event: JobEvent) -> None:
        """Print what the ranks wait for, or that they continue."""
        self._interject(render_run.hung(event))

    def observed(self, event: JobEvent) -> None:
        """Print which rank delays the others or is missing, and why."""
        self._interject([f"{event.text[:1].upper()}{event.text[1:]}"])

    def watched(self, training: TrainingWatcher) -> None:
        """Print the verdict on the training."""
        if training.watched is None:
            self._tell([render_watch.nothing(training.nothing)])
            return
        self._tell(render_watch.verdict(training.watched))
        if training.watched.findings and self._job_is_kept:
            self._tell([layout.field("Page", f"epochzero watch show {self._job.started.job}")])

    def injected(self, outcomes: Sequence[InjectionOutcome]) -> None:
        """Print the effects of the injected faults."""
        self._tell(render_run.injected(outcomes))

    def simulates(self, aspects: Sequence[Aspect]) -> None:
        """Print which properties of the platform are simulated."""
        self._tell(render_run.simulated(self._job.started.target, aspects))

    def stored_elsewhere(self, wanted: Path, home: Path | None) -> None:
        """Print where the job is stored instead, even with --quiet."""
        if home is not None:
            say(f"cannot write {wanted}; the job is stored in {home}")
        else:
            say(f"cannot write {wanted} or a temporary directory; the job is not stored")

    def waits(self, seconds: float) -> bool:
        """Wait before a retry; return False if Ctrl-C cancels it."""
        if not self._quiet:
            say(f"restarting in {seconds:.0f} s; press Ctrl-C to cancel")
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            return False
        return True

    def ends(self, journal: Journal | None) -> None:
        """Finish storing and sending an attempt whose records are all written.

        A short job stays in its journal until the next command opens the store, unless --store names another
        one: loading the database library would take longer than the job.
        """
        from epochzero.cli import for_this_install

        if journal is None:
            return
        if journal.lost:
            say(
                f"{journal.path.parent}: some records of the job could not be stored; is the disk full?"
            )
        if has_capture(journal.path.parent):
            # A job that succeeded has a capture if one of its losses was not finite.
            self._tell([layout.field("Replay", f"epochzero replay {journal.path.parts[-3]}")])
        if self._sending is not None and not self._sending.finish():
            say(f"the job was not sent: {self._sending.trouble}; to retry: epochzero send")
        waits = not self._has_own_store and time.monotonic() - self._began < _SHORT_S
        if self._recording is not None and not waits and not self._recording.finish():
            say(for_this_install(f"the job is not in the store yet: {self._recording.trouble}"))
        elif self._knows_more:
            more = f"epochzero show {journal.path.parts[-3]}"
            if self._recording is None:
                more = for_this_install(f"pip install 'epochzero[store]', then {more}")
            self._tell([layout.field("More", more)])

    def _tell(self, lines: Iterable[str]) -> None:
        if self._quiet:
            return
        with suppress(OSError):
            for line in lines:
                click.echo(line, err=True)

    def _interject(self, lines: Iterable[str]) -> None:
        """Print lines while the job runs, clear of a progress bar."""
        if self._quiet:
            return
        # The job may have set the terminal to raw mode, which adds no carriage return.
        form = "\r\033[K{}\r\n" if sys.stderr.isatty() else "{}\n"
        text = "".join(form.format(layout.plain(f"epochzero: {line}")) for line in lines)
        with suppress(OSError):
            os.write(2, text.encode(errors="replace"))


def say(text: str) -> None:
    """Print a message on standard error."""
    with suppress(OSError):
        click.echo(f"epochzero: {text}", err=True)


def _record_problem(failed: FailedAttempt, text: str) -> None:
    """Store in the journal why the webhook was not notified."""
    if failed.folder is None:
        return
    with suppress(InputError):
        journal = Journal(failed.folder)
        journal.write(JobEvent(time.time(), failed.ended.elapsed, "not_notified", text))
        journal.close()
