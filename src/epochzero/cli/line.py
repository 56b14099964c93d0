"""A status line on standard error for long work, on a terminal only; it is erased at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from epochzero.number_formats import duration

EVERY_S = 1.0


class StatusLine:
    """The line; shown after a delay, and updated once per second."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._began: tuple[float, int] | None = None
        self.shown = False

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Show the state of the work; ``at_once`` if it may not change for long."""
        now = time.monotonic()
        if (now - self._last < EVERY_S and not at_once) or not sys.stderr.isatty():
            return
        self._last = now
        click.echo(f"\r\x1b[K{text} ...", err=True, nl=False)
        self.shown = True

    def show_progress(self, done: int, total: int, units: str) -> None:
        """Show a bar with the rate and the time left, counted from the first call."""
        now = time.monotonic()
        began, before = self._began = self._began or (now, done)
        text = f"[{'#' * (20 * done // max(total, 1)):<20}] {done:,} of {total:,} {units}"
        if done > before and now > began:
            rate = (done - before) / (now - began)
            text += f", {rate:.3g} a second, {duration((total - done) / rate)} left"
        self.show(text)


@contextmanager
def line() -> Iterator[StatusLine]:
    """Show a line while the work lasts."""
    shown = StatusLine()
    try:
        yield shown
    finally:
        if shown.shown:
            click.echo("\r\x1b[K", err=True, nl=False)
