"""Rankings as text for people."""

from __future__ import annotations

from collections.abc import Iterator

import click

from epochzero.cli import layout
from epochzero.cli.ranking_labels import (
    BUG_TYPES,
    HASH_LENGTH,
    MOST_REASONS,
    is_worth_showing,
    lines_of,
    reranking_text,
    suspicion_text,
)
from epochzero.locate.model import Item, Ranking


def lines(found: Ranking, explain: bool) -> Iterator[str]:
    """Yield the lines of a ranking; with ``explain``, the reasons for each place."""
    yield _headline(found)
    if not found.items:
        yield layout.wrapped(
            "", "Add a traceback (--log), an error message or the name of a file or function."
        )
    if explain and found.bug_type:
        yield layout.field("Type", BUG_TYPES.get(found.bug_type, found.bug_type))
    if found.extrinsic is not None and is_worth_showing(found.extrinsic, explain):
        yield layout.field("Elsewhere", suspicion_text(found.extrinsic))
        for line in found.extrinsic.evidence:
            yield layout.wrapped("", layout.shorten(line.strip(), 200))
    if found.reranking is not None:
        yield layout.field("Model", reranking_text(found.reranking))
    width = len(str(len(found.items)))
    for number, item in enumerate(found.items, 1):
        yield from _item(item, f"{number:>{width}}", explain)
    for note in found.notes:
        yield layout.field("Note", layout.one_line(note))


def _headline(found: Ranking) -> str:
    what = f"{layout.counted(found.searched, 'file')} {_where(found)}, method {found.method}"
    if not found.items:
        mark = click.style("NOT LOCATED", fg="yellow", bold=True)
        return f"{mark}  No code matches the report in {what}"
    mark = click.style("LOCATED", fg="green", bold=True)
    places = layout.counted(len(found.items), f"likely {found.level}")
    return f"{mark}  {places} in {what}"


def _where(found: Ranking) -> str:
    return f"at {found.commit[:HASH_LENGTH]}" if found.commit else "of the working tree"


def _item(item: Item, number: str, explain: bool) -> Iterator[str]:
    unit = f"  {layout.one_line(item.unit)}" if item.unit else ""
    yield f"{number}  {click.style(lines_of(item), bold=True)}{unit}"
    indent = " " * (len(number) + 2)
    if item.code:
        yield f"{indent}{click.style(layout.one_line(layout.shorten(item.code, 160)), fg='cyan')}"
    for reason in item.reasons[: MOST_REASONS if explain else 1]:
        yield f"{indent}{layout.one_line(reason.text)}"
