"""Child processes of the service must not outlive it, even if it is killed."""

from __future__ import annotations

import os
import signal
from multiprocessing import connection, parent_process


def exit_with_parent() -> None:
    """Runs in a thread of a child process: kills the process once its parent has exited."""
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)
