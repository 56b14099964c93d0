"""A small process between the supervisor and the job, so that the job's tree never outlives either.

It leads the job's session, starts the job in a process group of its own (were it the leader itself,
the terminal could not stop it), adopts what the job orphans, and tells the supervisor over a socket
what becomes of the job, one JSON object a line:

    {"running": pid} | {"failed": errno}         it was started, or could not be
    {"stopped": signal}                          as by Ctrl-Z
    {"exited": status}                           as waitpid(2) has it
    {"gone": [names], "stuck": [names]}          nothing of the tree lives; what had to be ended for it

The supervisor tells it ``{"signal": n}`` for the job's group, and ``{"end": seconds}`` to end the tree
after a grace. When the socket closes, the supervisor is dead, and the tree is ended.

What the job leaves running has a second to end by itself, and one more after SIGTERM.
Python's standard library only: the guard runs without anything else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import socket
import sys
import termios
import time
from contextlib import suppress
from typing import Any, NoReturn

from epochzero.platform import ADOPTS_ORPHANS, adopt_orphans, name_of, pipe
from epochzero.run.process.guard_channel import Channel
from epochzero.run.process.tree import descendants, send

LINGER_S = 1.0
"""What a job leaves behind may run so long after it, and again after SIGTERM."""
PATIENCE_S = 30.0
"""A process that cannot be killed, as one that waits for a device, is not waited for any longer."""
_AGAIN_S = 0.02
_LIST_AGAIN_S = 0.1
_FIRST_LINE = 256
"""Bytes of a program that tell whether it is a script."""
_NEVER = float("inf")
# What may come from a terminal or scheduler to every process: the supervisor decides about it.
_LEFT_TO_THE_SUPERVISOR = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE,
)  # fmt: skip


def main(descriptor: int) -> None:
    """Guards one job. The first line of the socket says which: see `supervise`."""
    for number in _LEFT_TO_THE_SUPERVISOR:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    channel = Channel(socket.socket(fileno=descriptor))
    adopt_orphans()
    os.setsid()
    orders: list[dict[str, Any]] | None = []
    while orders == []:
        orders = channel.receive()
    if orders:
        _Guard(channel, orders[0]).run(orders[1:])


class _Guard:
    """The loop. Times are of the monotonic clock.

    Attributes:
        ask_at, kill_at, give_up_at: when the whole tree gets SIGTERM, SIGKILL, and is left alone.
    """

    def __init__(self, channel: Channel, job: dict[str, Any]) -> None:
        self.channel = channel
        self.waker, wake = pipe()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.pid = _start(job, channel)
        self.exited = False
        self.grace: float = job["grace"]
        self.alone = False
        self.ask_at = self.kill_at = self.give_up_at = _NEVER
        self.left: dict[int, str] = {}

    def run(self, orders: list[dict[str, Any]]) -> None:
        """Until nothing of the tree lives, or what lives cannot be killed."""
        poller = select.poll()
        poller.register(self.channel, select.POLLIN)
        poller.register(self.waker, select.POLLIN)
        stuck: list[str] = []
        self._obey(orders)
        while self._reap() or self._has_orphans():
            wait = min(self.ask_at, self.kill_at) - time.monotonic()
            if self.exited and not ADOPTS_ORPHANS:
                # No signal tells that an orphan has exited, and each listing of the processes ends one of its own.
                time.sleep(_LIST_AGAIN_S)
                wait = 0.0
            ready = dict(poller.poll(None if wait == _NEVER else max(0.0, wait) * 1000))
            if self.waker in ready:
                os.read(self.waker, 4096)
            if self.channel.fileno() in ready:
                received = self.channel.receive()
                if received is None:
                    poller.unregister(self.channel)
                    self.alone = True
                    self._end(self.grace)
                self._obey(received or [])
            if time.monotonic() > self.give_up_at:
                stuck = [name_of(pid) for pid in descendants(os.getpid())]
                break
            self._press()
        self.channel.send(gone=list(self.left.values()), stuck=stuck)

    def _obey(self, orders: list[dict[str, Any]]) -> None:
        for order in orders:
            if "end" in order:
                self._end(order["end"])
            elif not self.exited:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, order["signal"])

    def _end(self, grace: float) -> None:
        """SIGTERM is for those that have not received it yet: after a death, and for what is left."""
        now = time.monotonic()
        if self.alone:
            self.ask_at = now
        self.kill_at = min(self.kill_at, now + grace)

    def _press(self) -> None:
        """Sends what is due to all that lives; a tree that forks meanwhile is found again."""
        now = time.monotonic()
        if now < self.ask_at and now < self.kill_at:
            return
        living = descendants(os.getpid())
        if self.exited:
            self.left |= {pid: name_of(pid) for pid in living if pid not in self.left}
        if now >= self.kill_at:
            send(signal.SIGKILL, living)
            self.kill_at = now + _AGAIN_S
            self.give_up_at = min(self.give_up_at, now + PATIENCE_S)
        else:
            send(signal.SIGTERM, living)
            if self.exited:
                self.kill_at = min(self.kill_at, now + LINGER_S)
        self.ask_at = _NEVER

    def _has_orphans(self) -> bool:
        """Whether processes of the tree live that are no children of this one."""
        return not ADOPTS_ORPHANS and bool(descendants(os.getpid()))

    def _reap(self) -> bool:
        """Takes note of all that has ended or stopped; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid != self.pid:
                continue
            if os.WIFSTOPPED(status):
                self.channel.send(stopped=os.WSTOPSIG(status))
            else:
                self.exited = True
                self.channel.send(exited=status)
                self.ask_at = time.monotonic() + LINGER_S


def _start(job: dict[str, Any], channel: Channel) -> int:
    """Starts the job; its number. Ends this process when it cannot be started."""
    if job["terminal"] is not None:
        fcntl.ioctl(job["terminal"], termios.TIOCSCTTY, 0)
    failed, failing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(job, failing)
    with suppress(OSError):
        os.setpgid(pid, pid)
    os.close(failing)
    for descriptor in {*job["streams"].values()} - {0, 1, 2}:
        os.close(descriptor)
    # Who writes to the job's standard input is to see it closed when the job has closed it.
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    problem = os.read(failed, 16)
    os.close(failed)
    if problem:
        channel.send(failed=int(problem))
        os.waitpid(pid, 0)
        sys.exit()
    channel.send(running=pid)
    return pid


def _become(job: dict[str, Any], failing: int) -> NoReturn:
    """Turns this process into the job, or writes the error's number to ``failing``."""
    try:
        os.setpgid(0, 0)
        if job["terminal"] is not None:
            os.tcsetpgrp(job["terminal"], os.getpid())
        for number in {*_LEFT_TO_THE_SUPERVISOR, signal.SIGXFSZ} - {*job["ignored"]}:
            signal.signal(number, signal.SIG_DFL)
        for stream in (0, 1, 2):
            if str(stream) in job["streams"]:
                os.dup2(job["streams"][str(stream)], stream)
            else:
                os.close(stream)
        for descriptor in {*job["streams"].values()} - {0, 1, 2}:
            os.close(descriptor)
        _execute(job["command"], job["environment"])
    except OSError as error:
        os.write(failing, str(error.errno).encode())
    finally:
        os._exit(127)


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    """As a shell does: a script that names no interpreter is one for ``sh``; a binary is no script."""
    if not command[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        folders = [""] if "/" in command[0] else os.get_exec_path(environment)
        paths = [os.path.join(folder, command[0]) for folder in folders]
        searched = "/" not in command[0]
        if searched and error.errno == errno.EACCES and not any(map(os.path.lexists, paths)):
            # A directory of the PATH that cannot be searched; shells pass over it.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
        if error.errno != errno.ENOEXEC:
            raise
        script = next(path for path in paths if os.access(path, os.X_OK))
        if _is_binary(script):
            raise
        os.execve("/bin/sh", ["sh", script, *command[1:]], environment)


def _is_binary(path: str) -> bool:
    """Whether a file is of another machine, or damaged: its first line is none that a script has."""
    with open(path, "rb") as file:
        first = file.readline(_FIRST_LINE)
    return first.startswith(b"\x7fELF") or b"\0" in first
