"""Draw items of a data set that the user's code creates, in a contained process of its Python."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epochzero.check.dryrun.contain.model import Exit, Limits
from epochzero.check.dryrun.process import RECORDS_DESCRIPTOR, SPEC_DESCRIPTOR, run_contained
from epochzero.data import Array
from epochzero.errors import InputError

CHILD = Path(__file__).parent / "child" / "dataset.py"
ITEMS = 1000
STARTING_S = 60.0
_DAMAGED = (KeyError, TypeError, ValueError, RecursionError)


def draw_items(
    name: str, folder: Path, environment: Mapping[str, str], *, seconds: float = 30.0
) -> list[Mapping[str, Any]]:
    """Items of a data set: random ones if it has a length, otherwise the first.

    Args:
        name: ``module:attribute``: a data set, a loader, or a function that returns one.
        folder: directory from which the module is imported.
        environment: variables of the process; its ``PATH`` determines the Python.
        seconds: time after which no further item is drawn.

    Returns:
        For each item its values by column; arrays are `Array`.

    Raises:
        InputError: the data set or one of its items cannot be created.
    """
    python = shutil.which("python", path=environment.get("PATH")) or sys.executable
    ended = run_contained(
        [python, str(CHILD), str(SPEC_DESCRIPTOR), str(RECORDS_DESCRIPTOR)],
        folder=folder,
        environment=environment,
        limits=Limits(seconds=seconds + STARTING_S),
        spec=json.dumps({"name": name, "items": ITEMS, "seconds": seconds}).encode(),
    )
    items = []
    for record in _records(ended):
        if record.get("kind") == "item":
            items.append(_item(record))
        elif record.get("kind") == "raised":
            what = f"{record.get('type')}: {record.get('message')}"
            raise InputError(f"{name}: {what} ({python})")
    if not items:
        raise InputError(f"{name}: it returned no item. {ended.why}")
    return items


def _records(ended: Exit) -> Iterator[Mapping[str, Any]]:
    """The output of the child; the user's code may have written it."""
    for line in ended.records:
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(parsed, dict):
            yield parsed


def _item(record: Mapping[str, Any]) -> Mapping[str, Any]:
    columns = record.get("columns")
    if not isinstance(columns, dict):
        return {}
    return {str(name): _value(value) for name, value in columns.items()}


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        shape = tuple(map(int, value["shape"]))
        return Array(shape, str(value["dtype"]), tuple(map(float, value["values"])))
    except _DAMAGED:
        return None
