"""One line on standard error about long work, on a terminal only, that is taken away in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

EVERY_S = 1.0


class StatusLine:
    """The line; it is shown once the work takes long, and written anew once a second."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.shown = False

    def tell(self, text: str) -> None:
        """What the work has come to."""
        now = time.monotonic()
        if now - self._last < EVERY_S or not sys.stderr.isatty():
            return
        self._last = now
        click.echo(f"\r\x1b[K{text} ...", err=True, nl=False)
        self.shown = True


@contextmanager
def line() -> Iterator[StatusLine]:
    """A line for as long as the work takes."""
    shown = StatusLine()
    try:
        yield shown
    finally:
        if shown.shown:
            click.echo("\r\x1b[K", err=True, nl=False)
