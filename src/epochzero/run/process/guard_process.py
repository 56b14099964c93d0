"""The supervisor's side of the guard: starts it, tells it what to do, hears what becomes of the job."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from epochzero.run.process.guard_channel import Channel
from epochzero.run.process.tree import end_descendants, started_at

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[2])\n"
    "from epochzero.run.process.guard import main; main(int(sys.argv[1]))"
)
_PATIENCE_S = 10.0


class GuardProcess:
    """A running guard and the job behind it.

    Attributes:
        channel: on which it tells what becomes of the job.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        streams: Mapping[int, int],
        *,
        terminal: int | None,
        ignored: Collection[int],
        grace: float,
    ) -> None:
        """Starts the guard, and by it the job.

        Args:
            command: program and arguments.
            environment: of the job.
            streams: the job's descriptor for each standard stream that it has.
            terminal: the descriptor of the terminal of its session.
            ignored: signals that it ignores from the start.
            grace: seconds between SIGTERM and SIGKILL, also when the supervisor is dead.
        """
        self._grace = grace
        ours, theirs = socket.socketpair()
        for descriptor in (theirs.fileno(), *streams.values()):
            os.set_inheritable(descriptor, True)
        root = str(Path(__file__).parents[3])
        # What we were started with is the job's too, as `--config <(make-config)` of a shell.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(theirs.fileno()), root],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
        )
        theirs.close()
        self._since = started_at(self._process.pid)
        self.channel = Channel(ours)
        self.channel.send(
            command=list(command),
            environment=dict(environment),
            streams=streams,
            terminal=terminal,
            ignored=sorted(ignored),
            grace=grace,
        )

    def signal(self, number: int) -> None:
        """Sends a signal to the job's process group."""
        self.channel.send(signal=number)

    def end(self, grace: float) -> None:
        """Has the whole tree of the job killed after so many seconds."""
        self.channel.send(end=grace)

    def wait(self) -> None:
        """Waits for the guard itself, which ends when the tree is gone."""
        self.channel.close()
        self._process.wait()

    def adopt(self) -> int:
        """Ends what is left of a guard that was killed; how many processes could not be ended.

        The guard's processes have become ours. No others are older than it, but for what
        watchers have started since, which ends with them.
        """
        self.wait()
        left = end_descendants(
            os.getpid(), since=self._since, grace=self._grace, patience=_PATIENCE_S
        )
        return len(left)
