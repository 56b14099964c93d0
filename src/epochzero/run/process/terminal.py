"""The terminal of the job: whatever is a terminal outside is one for the job, and nothing else is.

With a terminal for input and output the job gets a pseudo terminal of its own and all keys, Ctrl-C
and Ctrl-Z among them, go there unread. Where only output goes to a terminal (``< data``, ``2>&1 |
tee``), the pseudo terminal is there for size and colours; keys stay with the terminal outside, so that
a pager at the end of a pipe keeps them. Streams that are no terminal are never made one.
"""

from __future__ import annotations

import fcntl
import os
import pty
import selectors
import termios
import tty
from collections.abc import Callable
from contextlib import suppress

_MOST_KEYS = 256
"""The job's terminal takes as many at once without waiting."""


def closed_streams() -> frozenset[int]:
    """Which standard streams this process was started without.

    Their numbers are taken by ``/dev/null``, lest a file that is opened later gets one of them.
    """
    closed: set[int] = set()
    for stream in (0, 1, 2):
        try:
            os.fstat(stream)
        except OSError:
            closed.add(stream)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    return frozenset(closed)


def terminals() -> frozenset[int]:
    """Which standard streams are terminals."""
    return frozenset(stream for stream in (0, 1, 2) if os.isatty(stream))


class Terminal:
    """A pseudo terminal that stands for the one outside.

    Attributes:
        outside: the stream that is the terminal outside.
        typed: whether keys go to the job; then its terminal is that of its session.
        master, slave: the supervisor's and the job's end.
        raw: whether the terminal outside hands on every key now.
    """

    def __init__(self, outside: int, *, typed: bool) -> None:
        """Makes one with the size and the settings of the terminal outside.

        Raises:
            OSError: the system has no more of them.
        """
        self.outside = outside
        self.typed = typed
        self.raw = False
        self.master, self.slave = pty.openpty()
        self._settings = termios.tcgetattr(outside)
        # In the background the terminal outside is set up for the shell's line, not for a job.
        inside = termios.tcgetattr(outside if self.foreground else self.slave)
        if not typed:
            # The terminal outside makes line ends; doing it twice would change bytes.
            inside[1] &= ~termios.OPOST
        termios.tcsetattr(self.slave, termios.TCSANOW, inside)
        self.resize()

    @property
    def foreground(self) -> bool:
        """Whether the shell lets this process use the terminal outside."""
        with suppress(OSError):
            return os.tcgetpgrp(self.outside) == os.getpgrp()
        return False

    def take_keys(self) -> None:
        """From now on every key goes to the job, where the shell allows it."""
        if self.typed and not self.raw and self.foreground:
            self._settings = termios.tcgetattr(self.outside)
            tty.setraw(self.outside, termios.TCSADRAIN)
            self.raw = True

    def give_back_keys(self) -> None:
        """The terminal outside is as it was."""
        if self.raw:
            self.raw = False
            with suppress(termios.error):
                termios.tcsetattr(self.outside, termios.TCSADRAIN, self._settings)

    def resize(self) -> None:
        """Gives the job's terminal the size of the one outside; the system tells the job."""
        with suppress(OSError):
            size = fcntl.ioctl(self.outside, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def interrupts(self, keys: bytes) -> bool:
        """Whether keys hold the one that interrupts, and the job has not taken it for itself."""
        settings = termios.tcgetattr(self.master)
        return bool(settings[3] & termios.ISIG) and settings[6][termios.VINTR] in keys


class Keys:
    """Carries keys from the terminal outside to the job's, while the shell lets us have them."""

    def __init__(
        self,
        terminal: Terminal,
        selector: selectors.BaseSelector,
        interrupted: Callable[[], object],
    ) -> None:
        """Carries keys from now on if the terminal has taken them.

        Args:
            terminal: with keys.
            selector: calls what it is given as ``data`` when a descriptor is ready.
            interrupted: called when the key that interrupts the job is typed.
        """
        self._terminal = terminal
        self._selector = selector
        self._interrupted = interrupted
        self._typed = b""
        if terminal.raw:
            self._listen()

    def take(self) -> bool:
        """Takes the keys if they are not taken; False while the shell does not allow it."""
        if not self._terminal.raw:
            self._terminal.take_keys()
            if self._terminal.raw:
                self._listen()
        return self._terminal.raw

    def give_back(self) -> None:
        """Leaves the keys to the shell."""
        if self._terminal.raw:
            self._terminal.give_back_keys()
            self._forget()

    def _listen(self) -> None:
        self._selector.register(self._terminal.outside, selectors.EVENT_READ, self._read)

    def _forget(self) -> None:
        for descriptor in (self._terminal.outside, self._terminal.master):
            with suppress(KeyError):
                self._selector.unregister(descriptor)

    def _read(self) -> None:
        with suppress(OSError):
            self._typed += os.read(self._terminal.outside, _MOST_KEYS)
        if self._typed and self._terminal.interrupts(self._typed):
            self._interrupted()
        self._forget()
        if self._typed:
            self._selector.register(self._terminal.master, selectors.EVENT_WRITE, self._hand_on)

    def _hand_on(self) -> None:
        with suppress(OSError):
            self._typed = self._typed[os.write(self._terminal.master, self._typed) :]
        if not self._typed:
            self._forget()
            self._listen()
