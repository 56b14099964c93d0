"""Draws items of a data set of the user's: ``python dataset.py SPEC RECORDS``, two descriptors.

The user's module is imported and, where what it names is a function or a class, that is called. Each
item is a record of its columns; of an array some values stand for all.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import runpy
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

LONGEST_TEXT = 100_000
MOST_VALUES = 256


def main() -> None:
    """Reads the spec, draws the items and writes a record for each, and one of what went wrong."""
    # It makes the modules next to this one importable, and takes their folder from the path.
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py"))
    records = import_module("epochzero.check.dryrun.child.emit").RecordPipe(int(sys.argv[2]))
    guard = import_module("epochzero.check.dryrun.child.guard")
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        spec = json.load(file)
    scratch = os.environ.pop(guard.SCRATCH_VARIABLE, "")
    if scratch:
        guard.install(scratch, lambda record: None, lambda path: True)
    sys.path.insert(0, os.getcwd())
    try:
        for item in _drawn(_named(spec["name"]), spec["items"], spec["seconds"]):
            records.emit("item", columns=dict(_columns(item)))
    except BaseException as error:
        records.emit("raised", type=type(error).__name__, message=str(error))
    sys.stdout.flush()
    os._exit(0)


def _named(name: str) -> Any:
    """The object ``module:attribute``; of a loader the data set that it loads."""
    module, _, attribute = name.partition(":")
    found = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    if isinstance(found, type) or not (hasattr(found, "__getitem__") or hasattr(found, "__iter__")):
        found = found()  # type: ignore[operator]
    return getattr(found, "dataset", found)


def _drawn(data: Any, count: int, seconds: float) -> Iterator[Any]:
    """Items at random where the data set has a length, else the first."""
    end = time.monotonic() + seconds
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        length = len(data)
        chosen = random.Random(0).sample(range(length), min(count, length))
        items = (data[n] for n in sorted(chosen))
    else:
        items = iter(data)
    for item in itertools.islice(items, count):
        yield item
        if time.monotonic() > end:
            return


# -- Items -------------------------------------------------------------------------------------


def _columns(item: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an item by their path: ``a.b`` of mappings, ``0``, ``1`` of tuples."""
    if isinstance(item, Mapping):
        parts = list(item.items())
    elif hasattr(item, "_asdict"):
        parts = list(item._asdict().items())
    elif isinstance(item, tuple) or (isinstance(item, list) and not prefix):
        parts = list(enumerate(item))
    else:
        yield prefix or "value", _value(item)
        return
    for name, inner in parts:
        yield from _columns(inner, f"{prefix}.{name}" if prefix else str(name))


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(value)
    if isinstance(value, list) and all(isinstance(each, (int, float)) for each in value):
        return value[:MOST_VALUES]
    if hasattr(value, "size") and hasattr(value, "mode"):  # an image of pillow
        return f"{value.mode} image"
    return f"a {type(value).__name__}"


def _array(value: Any) -> Any:
    """An array, or the number that one without axes is; of torch or of numpy."""
    if not len(value.shape):
        return value.item()
    dtype = str(value.dtype).replace("torch.", "")
    flat = value.detach().cpu() if hasattr(value, "detach") else value
    flat = (flat.double() if hasattr(flat, "double") else flat.astype("float64")).reshape(-1)
    values = flat[:: max(1, len(flat) // MOST_VALUES)].tolist()
    if len(flat):
        values += [float(flat.min()), float(flat.max())]
    return {"shape": list(value.shape), "dtype": dtype, "values": values}


if __name__ == "__main__":
    main()
