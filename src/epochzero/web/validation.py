"""Validates untrusted records before they are stored: types, limits, redaction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import JSON

from epochzero.errors import InputError
from epochzero.redact import redact, redact_log
from epochzero.run.records.identity import is_job
from epochzero.run.records.model import Record, Start, to_dict
from epochzero.store.recorder import Origin
from epochzero.store.rows import rows_of

PLACE = "service"
"""Prefix of each journal's path in the spool, whatever host the service runs on."""

_MOST_ATTEMPTS = 100_000
_LARGEST = 2**53
"""Integers up to this are exact in every JSON reader."""
_DEEPEST = 40


def origin_of(team: str) -> Origin:
    """How a team's journals are imported."""
    return Origin(team, cleaned, redact_log, PLACE, tells=True)


def cleaned(record: Record) -> Record | None:
    """A redacted record; None if it cannot be stored.

    A journal is read line by line, with the types that its writer chose.
    """
    try:
        values = _clean(to_dict(record))
        del values["kind"]
        kind: Any = type(record)
        found: Record = _adapter(kind).validate_python(values)
        _check(found)
    except (ValidationError, InputError, AttributeError, TypeError, ValueError):
        return None
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _check(record: Record) -> None:
    """Rejects values that do not fit the columns of a row."""
    if isinstance(record, Start) and not (
        is_job(record.job) and 0 < record.attempt <= _MOST_ATTEMPTS
    ):
        raise InputError("not a valid job or attempt")
    for table, values in rows_of(record, 0, 0):
        for name, value in values.items():
            column = table.__table__.columns[name]
            if value is None and not column.nullable:
                raise InputError(f"{name} is missing")
            if value is None or isinstance(column.type, JSON):
                continue
            wanted = column.type.python_type
            if not isinstance(value, (int, float) if wanted is float else wanted):
                raise InputError(f"{name} is not of type {wanted.__name__}")


def _clean(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise InputError("nested too deeply")
    if isinstance(value, str):
        # PostgreSQL stores neither NUL nor unpaired surrogates.
        return redact(value.replace("\0", "")).encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_clean(str(key), depth + 1): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"{str(value)[:20]} is too large: at most 2**53")
    return value
