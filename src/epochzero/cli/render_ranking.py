"""How rankings are shown: text for people, JSON, Markdown, SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click

from epochzero import __version__
from epochzero.cli import layout
from epochzero.locate.model import SCHEMA, Extrinsic, Item, Ranking

__all__ = ["write"]

HASH_LENGTH = 10
MOST_REASONS = 3
"""So many of a place's reasons are told with ``--explain``; the JSON form has all."""
EVEN = 0.5
"""From this probability on a cause outside of the code is told of unasked."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TYPES = {
    "model": "the model's structure",
    "training": "training",
    "tensor": "tensors and inputs",
    "api": "use of an API",
    "gpu": "GPU",
    "ndl": "no fault of deep learning",
}


def write(found: Ranking, form: str, *, explain: bool) -> None:
    """Prints a ranking in one of the forms of ``epochzero locate --format``."""
    if form == "json":
        _echo_json(found.to_dict())
    elif form == "sarif":
        _echo_json(_sarif(found))
    elif form == "markdown":
        click.echo(layout.plain("\n".join(_markdown(found, explain))))
    else:
        for line in _text(found, explain):
            click.echo(line)


def _echo_json(value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A path may hold bytes that are no text; as escapes they survive.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


# -- Text --------------------------------------------------------------------------------------


def _text(found: Ranking, explain: bool) -> Iterator[str]:
    yield _headline(found)
    if not found.items:
        yield layout.wrapped(
            "", "A traceback (--log), a message or the name of a file or function would help."
        )
    if explain and found.bug_type:
        yield layout.field("Type", _TYPES.get(found.bug_type, found.bug_type))
    if found.extrinsic is not None and _worth_telling(found.extrinsic, explain):
        yield layout.field("Elsewhere", _suspicion(found.extrinsic))
        for line in found.extrinsic.evidence:
            yield layout.wrapped("", layout.shorten(line.strip(), 200))
    width = len(str(len(found.items)))
    for number, item in enumerate(found.items, 1):
        yield from _item(item, f"{number:>{width}}", explain)
    for note in found.notes:
        yield layout.field("Note", note)


def _headline(found: Ranking) -> str:
    what = f"{_counted(found.searched, 'file')} {_where(found)}, method {found.method}"
    if not found.items:
        mark = click.style("NOT LOCATED", fg="yellow", bold=True)
        return f"{mark}  The report has nothing in common with {what}"
    mark = click.style("LOCATED", fg="green", bold=True)
    places = _counted(len(found.items), f"likely {found.level}")
    return f"{mark}  {places} in {what}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _where(found: Ranking) -> str:
    return f"at {found.commit[:HASH_LENGTH]}" if found.commit else "of the work tree"


def _worth_telling(extrinsic: Extrinsic, explain: bool) -> bool:
    return extrinsic.probability >= EVEN or (explain and bool(extrinsic.suspect))


def _suspicion(extrinsic: Extrinsic) -> str:
    suspect = " ".join([extrinsic.suspect.replace("_", " "), extrinsic.name]).strip()
    chance = f"the cause may lie outside of this code ({extrinsic.probability:.0%})"
    return f"{chance}; suspect: {suspect}" if suspect else chance


def _item(item: Item, number: str, explain: bool) -> Iterator[str]:
    unit = f"  {_line(item.unit)}" if item.unit else ""
    yield f"{number}  {click.style(_place(item), bold=True)}{unit}"
    indent = " " * (len(number) + 2)
    if item.code:
        yield f"{indent}{click.style(_line(layout.shorten(item.code, 160)), fg='cyan')}"
    for reason in item.reasons[: MOST_REASONS if explain else 1]:
        yield f"{indent}{_line(reason.text)}"


def _place(item: Item) -> str:
    """Path and lines; editors open what is written so."""
    lines = f":{item.start}" if item.start else ""
    if item.end > item.start:
        lines += f"-{item.end}"
    return f"{_line(item.path)}{lines}"


def _line(text: str) -> str:
    """Text of a repository in one line; a question mark for each byte of a path that is no text."""
    line = layout.plain(text.replace("\n", " ").replace("\t", " "))
    return line.encode("utf-8", "replace").decode()


# -- Markdown ----------------------------------------------------------------------------------


def _markdown(found: Ranking, explain: bool) -> Iterator[str]:
    if found.items:
        yield f"### Likely places of the bug ({found.level}s)"
    else:
        yield "### No place in this code has anything in common with the report"
    yield ""
    for number, item in enumerate(found.items, 1):
        unit = f" in {layout.code(_line(item.unit))}" if item.unit else ""
        code = f": {layout.code(_line(item.code))}" if item.code else ""
        yield f"{number}. {layout.code(_place(item))}{unit}{code}"
        for reason in item.reasons[: MOST_REASONS if explain else 1]:
            yield f"   - {layout.escaped(_line(reason.text))}"
    if found.items:
        yield ""
    for note in found.notes:
        yield f"**Note** {layout.escaped(note)}\n"
    if explain and found.bug_type:
        yield f"**Type** {_TYPES.get(found.bug_type, layout.escaped(found.bug_type))}\n"
    if found.extrinsic is not None and _worth_telling(found.extrinsic, explain):
        yield f"**Elsewhere** {layout.escaped(_suspicion(found.extrinsic))}\n"
    commit = found.commit[:HASH_LENGTH] or "work tree"
    yield f"<sub>{commit} · {_counted(found.searched, 'file')} · method {found.method}</sub>"


# -- SARIF -------------------------------------------------------------------------------------


def _sarif(found: Ranking) -> dict[str, Any]:
    """The Static Analysis Results Interchange Format, version 2.1.0 (OASIS standard, 2020)."""
    rule = {
        "id": f"locate/{found.level}",
        "shortDescription": {"text": f"A {found.level} that may hold the bug of a report"},
        "defaultConfiguration": {"level": "note"},
    }
    driver = {"name": "EpochZero", "version": __version__, "rules": [rule]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, n, rule["id"]) for n, item in enumerate(found.items, 1)],
        "properties": {
            "schema": SCHEMA,
            "commit": found.commit,
            "method": found.method,
            "searched": found.searched,
        },
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(item: Item, number: int, rule: object) -> dict[str, Any]:
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": quote(os.fsencode(item.path)), "uriBaseId": "%SRCROOT%"}
    }
    if item.start:
        physical["region"] = {"startLine": item.start, "endLine": item.end}
    location: dict[str, Any] = {"physicalLocation": physical}
    if item.unit:
        location["logicalLocations"] = [{"fullyQualifiedName": item.unit, "kind": "function"}]
    told = "; ".join(_line(reason.text) for reason in item.reasons)
    return {
        "ruleId": rule,
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": _message(f"Likely place {number} of the bug: {told}")},
        "locations": [location],
        "rank": 100 / number,
        "properties": {"score": item.score},
    }


def _message(text: str) -> str:
    """Plain text for a SARIF message, in which brackets and braces have a meaning."""
    for character in "\\[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("{", "{{").replace("}", "}}")
