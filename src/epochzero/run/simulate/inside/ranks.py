"""Starts the ranks of a job, and ends all when one fails, as its launcher does."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

_GRACE_S = 5.0
_PAUSE_S = 0.05
_NOT_FOUND = 127


def run_ranks(command: list[str], ranks: list[dict[str, str]]) -> int:
    """Run the command once a rank; the exit code of the first that fails, as a shell has it."""
    running = {_start(command, variables): number for number, variables in enumerate(ranks)}
    for number in (signal.SIGTERM, signal.SIGINT):
        # The ranks are of our group and have got it too: their end is ours.
        signal.signal(number, lambda *_: None)
    failed, kill_at = 0, float("inf")
    while running:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if not ended:
            if time.monotonic() > kill_at:
                _send(signal.SIGKILL, running)
                kill_at = float("inf")
            time.sleep(_PAUSE_S)
            continue
        rank = running.pop(ended, None)
        code = os.waitstatus_to_exitcode(status)
        if rank is not None and code and not failed:
            failed = code if code > 0 else 128 - code
            sys.stderr.write(f"epochzero: rank {rank} failed; all ranks were terminated\n")
            sys.stderr.flush()
            _send(signal.SIGTERM, running)
            kill_at = time.monotonic() + _GRACE_S
    return failed


def _start(command: list[str], variables: dict[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.execvpe(command[0], command, {**os.environ, **variables})
    except OSError as error:
        sys.stderr.write(f"epochzero: {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(_NOT_FOUND)


def _send(number: int, processes: dict[int, int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
