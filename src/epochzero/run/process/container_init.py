"""The duties of a container's first process: it ends what has no parent, and passes signals on.

What `kubectl exec` leaves behind becomes a child of process 1, which has to wait for it. A supervisor
that waited for children it does not know could take the exit status of its own from itself; so it
becomes the child of a process that does nothing else.
"""

from __future__ import annotations

import os
import signal

from epochzero.run.process.signals import FORWARDED


def stand_behind_init() -> int | None:
    """Leaves this process to the duties of the first one, and continues in a child of it.

    Must be called before there are threads.

    Returns:
        None in the child; in the parent, when the child has ended, its exit code: 128 + n for
        signal n. What else lives ends with the parent.
    """
    # The kernel stops no first process; the supervisor would stop for nobody.
    awaited = {*FORWARDED, signal.SIGCHLD} - {signal.SIGTSTP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    while True:
        number = signal.sigwait(awaited)
        if number != signal.SIGCHLD:
            os.kill(child, number)
        elif (status := _reap(child)) is not None:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _reap(child: int) -> int | None:
    """Waits for all that have ended; the status of ``child`` when it is one of them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return status
        if pid == 0:
            return None
