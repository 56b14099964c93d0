"""Notifies others of a failure; errors in doing so do not change how the job ended."""

from __future__ import annotations

import time
from contextlib import suppress

from epochzero.errors import InputError
from epochzero.run.job import FailedAttempt
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import JobEvent
from epochzero.run.reports.end_summary import notice_of, write_termination_log
from epochzero.run.reports.notifications import Webhook


def announce(failed: FailedAttempt, webhook: Webhook | None) -> str:
    """Write a container's termination log, and notify a webhook if there is one.

    Returns:
        Why the webhook could not be notified, as stored in the journal; empty on success.
    """
    diagnosis = failed.diagnosis.to_dict() if failed.diagnosis is not None else None
    notice = notice_of(failed.started, failed.ended, diagnosis, failed.decision, failed.fault)
    write_termination_log(notice)
    if webhook is None or notice.state != "failed":
        return ""
    try:
        webhook.notify(notice)
    except InputError as error:
        _note(failed, str(error))
        return str(error)
    return ""


def _note(failed: FailedAttempt, text: str) -> None:
    if failed.folder is None:
        return
    with suppress(InputError):
        journal = Journal(failed.folder)
        journal.write(JobEvent(time.time(), failed.ended.elapsed, "not_notified", text))
        journal.close()
