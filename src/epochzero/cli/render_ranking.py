"""Rankings as text for people."""

from __future__ import annotations

from collections.abc import Iterator

import click

<<<<<<< HEAD
from epochzero.cli import layout
from epochzero.cli.ranking_labels import (
    BUG_TYPES,
    HASH_LENGTH,
    MOST_REASONS,
    is_worth_showing,
    lines_of,
    suspicion_text,
)
from epochzero.locate.model import Item, Ranking
=======
from epochzero.cli import layout, sarif
from epochzero.cli.output import echo_json
from epochzero.locate.model import SCHEMA, Extrinsic, Item, Ranking

HASH_LENGTH = 10
MOST_REASONS = 3
"""So many of a place's reasons are told with ``--explain``; the JSON form has all."""
EVEN = 0.5
"""From this probability on a cause outside of the code is told of unasked."""
_TYPES = {
    "model": "the model's structure",
    "training": "training",
    "tensor": "tensors and inputs",
    "api": "API usage",
    "gpu": "GPU",
    "ndl": "not a deep-learning fault",
}
>>>>>>> 1e9bca4a (Errors, pages, findings of watched trainings and answers of the tools in plain technical English)


def lines(found: Ranking, explain: bool) -> Iterator[str]:
    """A ranking as people read it; ``explain``: with the reasons for each place."""
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
    width = len(str(len(found.items)))
    for number, item in enumerate(found.items, 1):
        yield from _item(item, f"{number:>{width}}", explain)
    for note in found.notes:
        yield layout.field("Note", note)


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


<<<<<<< HEAD
=======
def _worth_telling(extrinsic: Extrinsic, explain: bool) -> bool:
    return extrinsic.probability >= EVEN or (explain and bool(extrinsic.suspect))


def _suspicion(extrinsic: Extrinsic) -> str:
    suspect = " ".join([extrinsic.suspect.replace("_", " "), extrinsic.name]).strip()
    chance = f"the cause may be outside this code ({extrinsic.probability:.0%})"
    return f"{chance}; suspect: {suspect}" if suspect else chance


>>>>>>> 1e9bca4a (Errors, pages, findings of watched trainings and answers of the tools in plain technical English)
def _item(item: Item, number: str, explain: bool) -> Iterator[str]:
    unit = f"  {layout.one_line(item.unit)}" if item.unit else ""
    yield f"{number}  {click.style(lines_of(item), bold=True)}{unit}"
    indent = " " * (len(number) + 2)
    if item.code:
        yield f"{indent}{click.style(layout.one_line(layout.shorten(item.code, 160)), fg='cyan')}"
    for reason in item.reasons[: MOST_REASONS if explain else 1]:
        yield f"{indent}{layout.one_line(reason.text)}"
<<<<<<< HEAD
=======


def _place(item: Item) -> str:
    """Path and lines; editors open what is written so."""
    lines = f":{item.start}" if item.start else ""
    if item.end > item.start:
        lines += f"-{item.end}"
    return f"{layout.one_line(item.path)}{lines}"


# -- Markdown ----------------------------------------------------------------------------------


def _markdown(found: Ranking, explain: bool) -> Iterator[str]:
    if found.items:
        yield f"### Likely locations of the bug ({found.level}s)"
    else:
        yield "### No code matches the report"
    yield ""
    for number, item in enumerate(found.items, 1):
        unit = f" in {layout.code(layout.one_line(item.unit))}" if item.unit else ""
        code = f": {layout.code(layout.one_line(item.code))}" if item.code else ""
        yield f"{number}. {layout.code(_place(item))}{unit}{code}"
        for reason in item.reasons[: MOST_REASONS if explain else 1]:
            yield f"   - {layout.escaped(layout.one_line(reason.text))}"
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


def _write_sarif(found: Ranking) -> None:
    title = f"A {found.level} that may contain the reported bug"
    rule = {
        "id": f"locate/{found.level}",
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title}, ranked by the evidence that both share."},
        "help": {
            "text": "The most likely location comes first. It is an estimate; review the reasons."
        },
        "defaultConfiguration": {"level": "note"},
    }
    identities = sarif.Identities()
    sarif.write(
        [rule],
        [_result(item, n, rule["id"], identities) for n, item in enumerate(found.items, 1)],
        properties={
            "schema": SCHEMA,
            "commit": found.commit,
            "method": found.method,
            "searched": found.searched,
        },
    )


def _result(item: Item, number: int, rule: object, identities: sarif.Identities) -> dict[str, Any]:
    location = sarif.location(item.path, item.start, last=item.end)
    if item.unit:
        location["logicalLocations"] = [{"fullyQualifiedName": item.unit, "kind": "function"}]
    told = "; ".join(layout.one_line(reason.text) for reason in item.reasons)
    return {
        "ruleId": rule,
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": sarif.message(f"Likely location {number} of the bug: {told}")},
        "locations": [location],
        "partialFingerprints": identities.of((str(rule), item.path, item.unit, item.code)),
        "rank": 100 / number,
        "properties": {"score": item.score},
    }
>>>>>>> 1e9bca4a (Errors, pages, findings of watched trainings and answers of the tools in plain technical English)
