"""The labeling screen of a terminal: an excerpt of the record above, the question with its choices below.

The complete record and the definitions open in the pager, which scrolls and searches. Control characters in records
were made visible before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from epochzero.cli.layout import counted, shorten
from epochzero.errors import InputError
from epochzero.study.labelling.items import LabelItem, visible
from epochzero.study.labelling.scheme import COMMANDS, Scheme
from epochzero.study.labelling.session import Session, View

LEAST_TEXT_ROWS = 4


def run_screen(session: Session, annotator: str) -> None:
    """Label until the annotator quits; every decision is already stored then.

    Raises:
        InputError: standard input or output is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(
            "labelling requires a terminal: standard input and output must not be redirected"
        )
    item, text, message, typed = None, "", "", ""
    with suppress(KeyboardInterrupt, EOFError):
        while True:
            view = session.view()
            if view.item is not item:
                item, text = view.item, _text(view.item)
            click.clear()
            click.echo("\n".join(_screen(view, session.scheme, annotator, text, message)), nl=False)
            typed = typed or _read_key()
            # Keys typed in quick succession arrive together; an arrow key is one sequence.
            key, typed = (typed[0], typed[1:]) if typed.isprintable() else (typed, "")
            if key == "q":
                break
            message = _handle(key, session, view, text)
    click.echo()


def _read_key() -> str:
    """Return a character, or the sequence of a key; raise EOFError at the end of the input.

    Unlike `click.getchar`, this does not discard what was typed while the screen was drawn.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        return click.getchar()
    inlet = sys.stdin.fileno()
    before = termios.tcgetattr(inlet)
    tty.setcbreak(inlet, termios.TCSADRAIN)
    try:
        sent = os.read(inlet, 32)
    finally:
        termios.tcsetattr(inlet, termios.TCSADRAIN, before)
    if sent in (b"", b"\x04"):
        raise EOFError
    return sent.decode("utf-8", "replace")


def _text(item: LabelItem | None) -> str:
    try:
        return item.text if item else ""
    except InputError as error:
        return str(error)


def _handle(key: str, session: Session, view: View, text: str) -> str:
    """Do what a key stands for; return a message for the next screen."""
    if key in view.choices:
        session.answer(view.choices[key].name)
    elif key == "u":
        return "" if session.undo() else "Nothing to undo."
    elif key == "s":
        session.skip()
    elif key == "n" and view.item:
        click.echo()
        with suppress(click.Abort):
            session.note(click.prompt("Note", default="", show_default=False))
    elif key == "/":
        _page(text)
    elif key == "?":
        _page("\n".join(_definitions(view, session.scheme)))
    elif key.strip():
        return f"{visible(key)} has no function here."
    return ""


def _page(text: str) -> None:
    click.clear()
    click.echo_via_pager(text)
    click.echo("Press any key to continue.")  # some pagers return at once
    _read_key()


def _definitions(view: View, scheme: Scheme) -> list[str]:
    lines = [*filter(None, [scheme.rule])]
    for key, choice in view.choices.items():
        example = f" Such as: {choice.example}" if choice.example else ""
        lines += ["", f"{key}  {choice.title}", visible(f"   {choice.definition}{example}")]
    return [*lines, "", f"Source: {scheme.source}"]


def _screen(view: View, scheme: Scheme, annotator: str, text: str, message: str) -> list[str]:
    size = os.get_terminal_size()  # COLUMNS and LINES do not follow a resize
    columns, rows = size.columns or 80, size.lines or 24
    skipped = f", {view.skipped:,} skipped" if view.skipped else ""
    progress = f"{view.labelled:,} of {view.total:,} labelled{skipped}  {annotator}"
    title = f"{view.item.id}  {view.item.title}" if view.item else "All records are labelled."
    head = f"{shorten(title, max(10, columns - len(progress) - 3))}  {progress}"
    question = _question(view, columns)
    keys = "  ".join(f"{key} {word}" for key, word in COMMANDS.items())
    room = max(LEAST_TEXT_ROWS, rows - len(question) - 3)
    lines = [line[at : at + columns] for line in text.split("\n") for at in range(0, len(line) or 1, columns)]  # fmt: skip
    excerpt = lines[-room:] if scheme.begin == "end" else lines[:room]
    part = f"{len(excerpt):,} of {counted(len(lines), 'line')}" if len(lines) > room else ""
    rule = (f"── {part} ── / shows all " if part else "").ljust(columns, "─")
    return [click.style(head, reverse=True), *excerpt, rule, *question, click.style(message or keys, dim=True)]  # fmt: skip


def _question(view: View, columns: int) -> list[str]:
    if view.question is None:
        return ["Every record is labelled. u undoes the last answer, q quits."]
    answered = " · ".join(view.answers.values()) + (f"  (note: {view.note})" if view.note else "")
    choices = []
    for key, choice in view.choices.items():
        names = ", ".join(view.chosen_by.get(choice.name, ()))
        choices.append(f"{key}  {choice.title}" + (f"  < {names}" if names else ""))
    title = click.style(view.question.title, bold=True)
    return [*filter(None, [answered.strip()]), title, *_in_columns(choices, columns)]


def _in_columns(texts: Sequence[str], columns: int) -> list[str]:
    """Arrange texts below each other, in as many columns as fit."""
    widest = max(map(len, texts)) + 3
    across = max(1, min(3, columns // widest)) if len(texts) > 4 else 1
    down = -(-len(texts) // across)
    return ["".join(text.ljust(widest) for text in texts[row::down]).rstrip() for row in range(down)]  # fmt: skip
