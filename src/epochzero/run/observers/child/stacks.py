"""In the job's process: a signal makes faulthandler append the stacks of all threads to a file.

py-spy is an extra, and a host with kernel.yama.ptrace_scope=1 or a container without SYS_PTRACE refuses it.
faulthandler needs neither. Its handler is C: it also answers while the interpreter's lock is held.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Mapping

FILE_VARIABLE = "EPOCHZERO_STACKS_FILE"
_LEAST_DESCRIPTOR = 200
"""Above those that programs close or reuse by number."""


def stack_signal() -> int:
    """The signal that asks for stacks: near the end of the real-time signals, which hardly a program uses.

    Returns:
        0 on a system without real-time signals, such as macOS.
    """
    last = getattr(signal, "SIGRTMAX", None)
    return int(last) - 3 if last is not None else 0


def begin_python(_: object, environment: Mapping[str, str]) -> None:
    """Sets the handler, unless the job has one; processes that it forks inherit it."""
    import fcntl

    path = environment.get(FILE_VARIABLE)
    number = stack_signal()
    if not path or not number or signal.getsignal(number) is not signal.SIG_DFL:
        return
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        high = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR)
    except OSError:  # The limit of open files is lower.
        high = file
    else:
        os.close(file)
    faulthandler.register(number, file=high, all_threads=True)
