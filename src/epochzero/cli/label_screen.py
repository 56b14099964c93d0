"""The labeling screen of a terminal: a record above, the question with its choices below.

Uses escape sequences and the standard library: the screen is redrawn after every key, so that resizing needs no
special treatment. Control characters in records were made visible before.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import textwrap
import tty
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from epochzero.cli.layout import counted
from epochzero.errors import InputError
from epochzero.study.labelling.items import visible
from epochzero.study.labelling.scheme import COMMANDS, Choice
from epochzero.study.labelling.session import Session, View

LEAST_COLUMNS, LEAST_TEXT_ROWS = 50, 4
_MOVES = "↑ ↓ PgUp PgDn Home End"
_ENTER_SCREEN, _LEAVE_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_KEYS = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down",
    b"\x1b[5~": "page up", b"\x1b[6~": "page down", b" ": "page down",
    b"\x1b[H": "home", b"\x1b[F": "end", b"\x1b[1~": "home", b"\x1b[4~": "end", b"\x1bOH": "home", b"\x1bOF": "end",
    b"\r": "enter", b"\n": "enter", b"\x7f": "erase", b"\x08": "erase", b"\x1b": "escape",
}  # fmt: skip
"""Sequences that keys send."""
_ENDS = (b"\x03", b"\x04", b"")
"""Ctrl-C, Ctrl-D, and a closed terminal."""


def run_screen(session: Session, annotator: str) -> None:
    """Label until the annotator quits; every decision is already stored then.

    Args:
        session: of the annotator.
        annotator: name shown in the corner.

    Raises:
        InputError: standard input or output is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("labelling requires a terminal; use --browser to label in the browser")
    with _terminal() as read_key, suppress(KeyboardInterrupt):
        _Screen(session, annotator, read_key).run()


@contextmanager
def _terminal() -> Iterator[Callable[[], str]]:
    """Read the terminal key by key; restore its settings afterwards."""
    inlet = sys.stdin.fileno()
    before = termios.tcgetattr(inlet)
    resized, resizes = os.pipe()
    os.set_blocking(resizes, False)
    woken = signal.set_wakeup_fd(resizes)
    # Without a handler, Python does not write to the pipe.
    handled = signal.signal(signal.SIGWINCH, lambda *_: None)

    def read_key() -> str:
        ready, _, _ = select.select([inlet, resized], [], [])
        if resized in ready:
            os.read(resized, 1024)
            return "resized"
        return _key(inlet)

    try:
        tty.setraw(inlet, termios.TCSADRAIN)
        _write(_ENTER_SCREEN)
        yield read_key
    finally:
        _write(_LEAVE_SCREEN)
        termios.tcsetattr(inlet, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handled)
        signal.set_wakeup_fd(woken)
        os.close(resized)
        os.close(resizes)


def _key(inlet: int) -> str:
    """Return a character, or the name of a key; raise KeyboardInterrupt at the end of the input."""
    sent = os.read(inlet, 1)
    if sent in _ENDS:
        raise KeyboardInterrupt
    if sent == b"\x1b":
        while select.select([inlet], [], [], 0.02)[0] and len(sent) < 8:
            sent += os.read(inlet, 1)
            if len(sent) > 2 and 0x40 <= sent[-1] <= 0x7E:
                break
    elif sent and sent[0] >= 0xC0:
        # The remaining bytes of a multibyte character.
        sent += os.read(inlet, 1 if sent[0] < 0xE0 else 2 if sent[0] < 0xF0 else 3)
    if sent in _KEYS:
        return _KEYS[sent]
    character = sent.decode("utf-8", "ignore")
    return character if len(character) == 1 and character.isprintable() else ""


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class _Screen:
    """Shows the session and handles keys.

    Args:
        session: of the annotator.
        annotator: shown in the corner.
        read_key: returns the next key.
    """

    def __init__(self, session: Session, annotator: str, read_key: Callable[[], str]) -> None:
        self._session = session
        self._annotator = annotator
        self._read_key = read_key
        self._color = not os.environ.get("NO_COLOR")
        self._shown = ""
        self._text = ""
        self._lines: list[str] = []
        self._width = 0
        self._top = 0
        self._last = 0
        self._rows = 1
        self._sought = ""
        self._match = -1
        self._message = ""

    def run(self) -> None:
        """Run until the annotator quits."""
        while True:
            view = self._session.view()
            self._show(view)
            key = self._read_key()
            self._message = "" if key != "resized" else self._message
            if key == "q":
                return
            self._do(key, view)

    def _do(self, key: str, view: View) -> None:
        moves = {
            "up": self._top - 1, "down": self._top + 1, "page up": self._top - self._rows,
            "page down": self._top + self._rows, "home": 0, "end": len(self._lines),
        }  # fmt: skip
        if key in moves:
            self._top = moves[key]
        elif key in view.choices:
            self._session.answer(view.choices[key].name)
        elif key == "u":
            self._message = "" if self._session.undo() else "Nothing to undo."
        elif key == "s":
            self._session.skip()
        elif key == "n" and view.item:
            if (text := self._ask("Note", view.note)) is not None:
                self._session.note(text)
        elif key == "/":
            if (text := self._ask("Search", self._sought)) is not None:
                self._search(text)
        elif key == "?":
            self._define(view)
        elif key.strip() and key not in ("enter", "erase", "escape", "resized"):
            self._message = f"{key} has no function here."

    def _search(self, text: str) -> None:
        """Go to the next line that contains the text, wrapping around at the end."""
        if text != self._sought:
            self._sought, self._match = text, -1
        count = len(self._lines)
        for step in range(1, count + 1):
            at = (self._match + step) % count
            if text and text.casefold() in self._lines[at].casefold():
                self._top = self._match = at
                return
        self._message = f"{text} not found." if text else ""

    # Drawing

    def _show(self, view: View) -> None:
        columns, rows = _size()
        below = self._question(view, columns)
        self._rows = rows - len(below) - 2
        if columns < LEAST_COLUMNS or self._rows < LEAST_TEXT_ROWS:
            least = f"{LEAST_COLUMNS} x {len(below) + 2 + LEAST_TEXT_ROWS}"
            self._draw([f"The terminal is too small: {columns} x {rows}.", f"{least} required; q quits."], columns)  # fmt: skip
            return
        self._layout(view, columns)
        at_end = 0 < self._last <= self._top
        last = self._last = max(0, len(self._lines) - self._rows)
        # The end of a text stays visible when the next question needs more room.
        self._top = last if at_end else max(0, min(self._top, last))
        until = min(len(self._lines), self._top + self._rows)
        shown = self._lines[self._top : until]
        shown += [""] * (self._rows - len(shown))
        where = (
            f"── {self._top + 1:,}-{until:,} of {counted(len(self._lines), 'line')} ── {_MOVES} "
        )
        rule = (where if last else "").ljust(columns, "─")[:columns]
        self._draw([self._head(view, columns), *map(self._found, shown), self._soft(rule), *below], columns)  # fmt: skip

    def _head(self, view: View, columns: int) -> str:
        skipped = f", {view.skipped:,} skipped" if view.skipped else ""
        progress = f"{view.labelled:,} of {view.total:,} labelled{skipped}  {self._annotator} "
        name = f" {view.item.id}  {view.item.title}" if view.item else " All records are labelled."
        return _style(_fit(name, columns - _width(progress) - 2) + "  " + progress, "7")

    def _question(self, view: View, columns: int) -> list[str]:
        keys = "  ".join(f"{key} {word}" for key, word in COMMANDS.items())
        foot = self._soft(self._message or keys)
        if view.question is None:
            return ["Every record is labelled. u undoes the last answer, q quits.", foot]
        answered = " · ".join(view.answers.values())
        note = f"  (note: {view.note})" if view.note else ""
        lines = [self._soft(_fit(f"{answered}{note}", columns))] if answered or note else []
        choices = [self._choice(key, one, view) for key, one in view.choices.items()]
        return [*lines, self._bold(view.question.title), *_in_columns(choices, columns), foot]

    def _choice(self, key: str, choice: Choice, view: View) -> str:
        names = ", ".join(view.said.get(choice.name, ()))
        return f"{key}  {choice.title}" + (f"  < {names}" if names else "")

    def _layout(self, view: View, columns: int) -> None:
        """Wrap the lines of a record to the terminal's width; cached until either changes."""
        identity = view.item.id if view.item else ""
        if identity != self._shown or not self._lines:
            try:
                self._text = view.item.text if view.item else ""
            except InputError as error:
                self._text = str(error)
        elif columns == self._width:
            return
        self._lines = _folded(self._text, columns)
        self._match = -1
        if identity != self._shown:
            self._top = len(self._lines) if self._session.scheme.begin == "end" else 0
            self._last = 0
        self._shown, self._width = identity, columns

    def _define(self, view: View) -> None:
        """Show the definitions of the choices, page by page."""
        columns, rows = _size()
        lines = textwrap.wrap(self._session.scheme.rule, columns - 1)
        for key, one in view.choices.items():
            lines += ["", f"{key}  {one.title}"]
            example = f" Such as: {one.example}" if one.example else ""
            lines += textwrap.wrap(visible(f"{one.definition}{example}"), columns - 1,
                                   initial_indent="   ", subsequent_indent="   ")  # fmt: skip
        lines += ["", *textwrap.wrap(f"Source: {self._session.scheme.source}", columns - 1)]
        for start in range(0, len(lines), rows - 1):
            self._draw(
                [*lines[start : start + rows - 1], self._soft("press any key to continue")], columns
            )
            while self._read_key() == "resized":
                pass

    def _ask(self, label: str, text: str) -> str | None:
        """Read a line of text; None if it was cancelled."""
        while True:
            columns, rows = _size()
            room = max(1, columns - len(label) - 28)
            prompt = f"{label}: {text[-room:]}_"
            _write(
                f"\x1b[{rows};1H\x1b[K{_fit(f'{prompt}  (Enter keeps, Esc does not)', columns - 1)}"
            )
            key = self._read_key()
            if key == "enter":
                return text
            if key == "escape":
                return None
            text = text[:-1] if key == "erase" else text + (" " if key == "page down" else key if len(key) == 1 else "")  # fmt: skip

    def _draw(self, lines: Sequence[str], columns: int) -> None:
        _write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")

    def _found(self, line: str) -> str:
        """Return a line of the record with the search term underlined."""
        at = line.casefold().find(self._sought.casefold()) if self._sought else -1
        if at < 0:
            return line
        end = at + len(self._sought)
        return f"{line[:at]}{_style(line[at:end], '4')}{line[end:]}"

    def _soft(self, text: str) -> str:
        return _style(text, "36") if self._color else text

    def _bold(self, text: str) -> str:
        return click.style(text, bold=True)


def _size() -> tuple[int, int]:
    """Return the current columns and rows: COLUMNS and LINES do not follow a resize."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return size.columns or 80, size.lines or 24


def _style(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _width(text: str) -> int:
    """Return the width in columns: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(one) for one in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fit(text: str, columns: int) -> str:
    """Pad or cut a text to exactly this many columns."""
    if _width(text) <= columns:
        return text + " " * (columns - _width(text))
    kept = next(_pieces(text, max(1, columns - 1)))
    return f"{kept}…" + " " * (columns - 1 - _width(kept))


def _pieces(text: str, columns: int) -> Iterator[str]:
    """Split a line at this many columns."""
    if text.isascii():
        yield from (text[at : at + columns] for at in range(0, max(1, len(text)), columns))
        return
    begin = taken = 0
    for at, character in enumerate(text):
        wide = _columns(character)
        if taken + wide > columns:
            yield text[begin:at]
            begin, taken = at, 0
        taken += wide
    yield text[begin:]


def _folded(text: str, columns: int) -> list[str]:
    return [piece for line in text.split("\n") for piece in _pieces(line, columns)]


def _in_columns(texts: Sequence[str], columns: int) -> list[str]:
    """Arrange texts below each other, in as many columns as fit."""
    widest = max(_width(text) for text in texts) + 3
    across = max(1, min(3, columns // widest)) if len(texts) > 4 else 1
    down = -(-len(texts) // across)
    return [
        "".join(_fit(text, min(widest, columns)) for text in texts[row::down]).rstrip()
        for row in range(down)
    ]
