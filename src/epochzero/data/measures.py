"""Numbers computed of each record, which show what its values do not: mean and norm of an array, hour of a time.

They are summarized and compared as columns are, but neither generated nor drawn. Formats whose records are
files measure the contents of files that they decode anyway (`Batch.measured`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from epochzero.data.summary import as_numbers, kind_of, seconds_of

DAY = 86_400
SPANS = {"hour": 2 * DAY, "day": 62 * DAY}
"""Measures of dates say nothing of dates that span less."""


def measures_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The measures of some records, by names such as ``norm of vector``."""
    return {
        f"{measure} of {name}": numbers
        for name, values in columns.items()
        for measure, numbers in _measures(values).items()
    }


def _measures(values: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    if isinstance(values, np.ndarray):
        return _of_arrays(values) if values.ndim > 1 and values.size else {}
    first = next((value for value in values if value not in (None, "")), None)
    if isinstance(first, list):
        return _of_lists(values)
    if seconds_of(first) is not None:
        return _of_dates(values)
    return _of_texts(values) if kind_of(first, texts=True) == "text" else {}


def _of_texts(values: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    """The share of capitals, and whether a text starts with one and ends with a letter or digit.

    They show what was converted, cut off, quoted or reversed.
    """
    texts = [value if isinstance(value, str) and value else None for value in values]
    return {
        "capitals": [text and sum(map(str.isupper, text)) / len(text) for text in texts],
        "capital start": [text and float(text[0].isupper()) for text in texts],
        "plain end": [text and float(text[-1].isalnum()) for text in texts],
    }


def _of_arrays(values: np.ndarray[Any, Any]) -> Mapping[str, Any]:
    """Of the items along the first axis, whatever their shape.

    Roughness, the mean difference of neighbours, shows what is blurred or in another order. Tilt, the mean of the
    second half of the last axis less that of the first, shows channels and columns that were exchanged.
    """
    numbers = values.astype(np.float64)
    rows = numbers.reshape(len(numbers), -1)
    half = (numbers.shape[-1] + 1) // 2
    with np.errstate(all="ignore"):
        found = {
            "mean": rows.mean(axis=1),
            "deviation": rows.std(axis=1),
            "norm": np.sqrt(np.square(rows).sum(axis=1)),
        }
        if numbers.shape[1] > 1:
            steps = np.abs(np.diff(numbers, axis=1))
            found["roughness"] = steps.reshape(len(numbers), -1).mean(axis=1)
        if numbers.shape[-1] > 1:
            ends = numbers[..., half:], numbers[..., : numbers.shape[-1] - half]
            later, earlier = (end.reshape(len(numbers), -1).mean(axis=1) for end in ends)
            found["tilt"] = later - earlier
    return found


def _of_lists(values: Sequence[Any]) -> Mapping[str, Any]:
    rows = [as_numbers(value) if isinstance(value, list) and value else None for value in values]
    if all(row is None for row in rows):
        return {}
    each = [{} if row is None else _of_arrays(row[np.newaxis]) for row in rows]
    names = max(each, key=len)
    return {
        name: np.array([one[name][0] if name in one else np.nan for one in each]) for name in names
    }


def _of_dates(values: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
    """The day of the month; of times also the hour as written, and the time zone."""
    days: list[float | None] = []
    hours: list[float | None] = []
    zones: list[str | None] = []
    for value in values:
        if seconds_of(value) is None:
            continue
        is_text = isinstance(value, str)
        moment = datetime.fromisoformat(value) if is_text else value
        days.append(moment.day)
        if isinstance(value, datetime) or (is_text and len(value) > len("2024-01-31")):
            hours.append(moment.hour + moment.minute / 60)
            zones.append(moment.strftime("UTC%z") if moment.tzinfo else "no time zone")
    return {"day": days} | ({"hour": hours, "time zone": zones} if hours else {})
