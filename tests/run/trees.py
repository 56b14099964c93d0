"""Real jobs as trees of processes, without the command around them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from epochzero.platform import adopt_orphans
from epochzero.run.process.tree import descendants, send, started_at
from tests.waiting import PATIENCE_S

SLEEPER = "import time; time.sleep(60)"


@contextmanager
def job(script: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python job, which is ended with all that it started; orphans come to this process."""
    environment: Mapping[str, str] = {**os.environ, **variables}
    adopt_orphans()
    child = subprocess.Popen([sys.executable, "-c", script], env=environment)
    since = started_at(child.pid)
    try:
        yield child
    finally:
        adopt_orphans(False)
        for pid in descendants(os.getpid(), since=since):
            send(9, [pid])
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        child.wait()


def until(what: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Waits until something is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)
