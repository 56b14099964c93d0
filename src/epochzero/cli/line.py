"""A status line on standard error for long work, with a bar, rate and time left; on a terminal only, and erased at the end."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from epochzero.number_formats import duration

EVERY_S = 1.0


def shows_progress() -> bool:
    """Whether standard error is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class StatusLine:
    """The line; shown after a delay, and updated once per second."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._counted = ""
        self._began = (self._last, 0)
        self.shown = False

    def show(self, doing: str, done: int = 0, total: int = 0, *, at_once: bool = False) -> None:
        """Show the state of the work.

        Args:
            doing: what is being done, or the units that are counted.
            done: number of units done; the rate is counted from the first call with the same `doing`.
            total: number of all units, for a bar and the time left; 0 if unknown.
            at_once: whether the state may not change for long.
        """
        now = time.monotonic()
        if doing != self._counted:
            self._counted, self._began = doing, (now, done)
        if (now - self._last < EVERY_S and not at_once) or not shows_progress():
            return
        self._last = now
        text = _with_bar(doing, done, total, now - self._began[0], done - self._began[1])
        write_line(f"{text} ...")
        self.shown = True


def write_line(text: str) -> None:
    """Replace the line of a terminal; an empty text erases it."""
    width = shutil.get_terminal_size().columns - 1
    click.echo(f"\r\x1b[K{text[:width]}", err=True, nl=False)


def bar(done: int, total: int) -> str:
    """A bar of 20 characters; `total` is not 0."""
    return f"[{'#' * (20 * done // total):<20}] "


def _with_bar(doing: str, done: int, total: int, seconds: float, since: int) -> str:
    if not (done or total):
        return doing
    text = f"{doing}: {done:,}"
    # Compressed files have more bytes than their sizes.
    if total := total if done <= total else 0:
        text = f"{bar(done, total)}{text} of {total:,}"
    if since > 0 and seconds > 0:
        rate = since / seconds
        text += f", {rate:.3g} a second" if rate < 100 else f", {rate:,.0f} a second"
        if total:
            text += f", {duration((total - done) / rate)} left"
    return text


@contextmanager
def line() -> Iterator[StatusLine]:
    """Show a line while the work lasts."""
    shown = StatusLine()
    try:
        yield shown
    finally:
        if shown.shown:
            write_line("")
