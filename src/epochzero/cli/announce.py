"""Tells others how a job ended; nothing that goes wrong there changes how it ended."""

from __future__ import annotations

import time

from epochzero.errors import InputError
from epochzero.run.journal import Journal
from epochzero.run.model import Concluded, Decision, Ended, Event, Started
from epochzero.run.notify import Webhook

__all__ = ["announce"]


def announce(
    started: Started,
    ended: Ended,
    journal: Journal | None,
    *,
    concluded: Concluded | None = None,
    decision: Decision | None = None,
    webhook: Webhook | None = None,
) -> None:
    """Writes a container's termination log, and tells a webhook if there is one."""
    # It takes a tenth of a second to import, and most jobs end well.
    from epochzero.run.notice import notice_of, write_termination_log

    notice = notice_of(started, ended, concluded, decision)
    write_termination_log(notice)
    if webhook is None:
        return
    try:
        webhook.tell(notice)
    except InputError as error:
        if journal is not None:
            journal.write(Event(time.time(), ended.elapsed, "not_notified", str(error)))
