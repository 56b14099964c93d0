"""Reads captures. A capture is untrusted: nothing in it is executed, and everything is validated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from epochzero.errors import InputError
from epochzero.run.replay.capture import CAPTURE_FOLDER, JOB_FILE
from epochzero.run.replay.child.files import (
    MANIFEST,
    SCHEMA,
    TENSORS,
    is_of_worker,
    may_grow,
    read_json,
)
from epochzero.run.replay.child.layout import read_header
from epochzero.run.replay.model import Capture, Position, ReplayFailure

_MOST_JOB_BYTES = 1 << 24
_PIECE = 1 << 20
_UNCAPTURED = "run the job with `epochzero run --capture`; a job that succeeds leaves no capture"


def read_capture(folder: Path) -> Capture:
    """Read the capture of the process that failed first.

    Args:
        folder: directory of an attempt, or of its captures.

    Raises:
        InputError: there is no capture, or it is truncated, damaged or of another version.
    """
    root = folder / CAPTURE_FOLDER if (folder / CAPTURE_FOLDER).is_dir() else folder
    paths = sorted(root.glob(f"*/{MANIFEST}"))
    if not paths:
        raise InputError(f"{folder} contains no capture; {_UNCAPTURED}")
    job = _object(root / JOB_FILE, _read_job)
    fields = [(path, _object(path, read_json)) for path in paths]
    for path, manifest in fields:
        if manifest.get("schema") != SCHEMA:
            raise InputError(f"{path}: {manifest.get('schema')!r} is not {SCHEMA}")
    try:
        # A process that was terminated from outside failed after another, or was killed.
        path, first = min(fields, key=lambda field: (_order(field[1]), field[1]["time"]))
        path, first = _origin(fields, first) or (path, first)
        # The captures of the other ranks are replayed together with this one.
        for other, manifest in fields:
            _check_parts(other.parent, manifest["parts"])
        return _capture(path.parent, first, job)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{root}: the capture is damaged: {type(error).__name__}: {error}") from error  # fmt: skip


def _order(manifest: Mapping[str, Any]) -> int:
    failure = manifest["failure"] or (manifest["nonfinite"] and {"kind": "nonfinite"})
    return 3 if failure is None else {"signal": 2, "exit": 1}.get(failure["kind"], 0)


def _origin(
    fields: Sequence[tuple[Path, dict[str, Any]]], first: Mapping[str, Any]
) -> tuple[Path, dict[str, Any]] | None:
    """Return the rank whose loss was not finite one step before another rank failed, because ranks share gradients."""
    own = first["nonfinite"]
    before = own["position"]["backwards"] - 1 if own else first["position"]["backwards"]
    for path, manifest in fields if _order(first) == 0 else ():
        loss = manifest["nonfinite"]
        if loss and loss["position"]["backwards"] == before:
            value = f"{loss['value']} in rank {manifest['rank']}; rank {first['rank']} failed one step later"
            return path, manifest | {"failure": None, "nonfinite": loss | {"value": value}}
    return None


def _read_job(path: Path) -> Any:
    if path.stat().st_size > _MOST_JOB_BYTES:
        raise ValueError("it is larger than expected")
    return json.loads(path.read_bytes())


def _object(path: Path, read: Callable[[Path], Any]) -> dict[str, Any]:
    try:
        fields = read(path)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: the capture is damaged: {error}") from error
    if not isinstance(fields, dict):
        raise InputError(f"{path}: the capture is damaged: it is not a JSON object")
    return fields


def _check_parts(folder: Path, parts: Mapping[str, Any]) -> None:
    """Check that the files are unchanged since they were written.

    Raises:
        InputError: a file was changed.
        KeyError, TypeError: the table of files is damaged.
    """
    for name, fields in parts.items():
        if name != TENSORS and not is_of_worker(name):
            raise InputError(f"{folder}: the capture contains the invalid file name {name!r}")
        path = folder / name
        try:
            with path.open("rb") as file:
                _check_part(path, file, fields)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: the capture is damaged: {error}") from error


def _check_part(path: Path, file: BinaryIO, fields: Mapping[str, Any]) -> None:
    size = path.stat().st_size
    if size < fields["bytes"] or (size > fields["bytes"] and not may_grow(path.name)):
        raise InputError(f"{path} has {size:,} of {fields['bytes']:,} bytes: it is truncated or modified")  # fmt: skip
    if path.name == TENSORS:
        read_header(file)
        file.seek(0)
    if _digest(file, fields["bytes"]) != fields["sha256"]:
        raise InputError(f"{path} is modified: its digest differs")


def _digest(file: BinaryIO, size: int) -> str:
    """SHA-256 of the first bytes of a file."""
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def _capture(folder: Path, manifest: Mapping[str, Any], job: Mapping[str, Any]) -> Capture:
    nonfinite = None
    if manifest["nonfinite"] is not None:
        nonfinite = _nonfinite(manifest["nonfinite"])
    failure = failure_of(manifest["failure"]) or (nonfinite[0] if nonfinite else _KILLED)
    snapshot = manifest["snapshot"]
    return Capture(
        folder=folder,
        command=tuple(map(str, job["command"])),
        directory=Path(job["folder"]),
        variables={str(name): str(value) for name, value in job["variables"].items()},
        withheld=tuple(map(str, job["withheld"])),
        commit=str(job["commit"]),
        changes=str(job["changes"]),
        rank=int(manifest["rank"]),
        failure=failure,
        position=position_of(manifest["position"]),
        nonfinite=nonfinite,
        losses=losses_of(manifest["losses"]),
        ended=float(manifest["time"]),
        elapsed_s=float(manifest["elapsed_s"]),
        snapshot=position_of(snapshot["position"]) if snapshot is not None else None,
        complete=bool(manifest["complete"]),
        checkpoint_bytes=int(manifest["checkpoint_bytes"]),
        size_bytes=sum(path.stat().st_size for path in folder.iterdir()),
        versions=_texts(manifest["packages"]) | _texts(manifest["versions"]),
        code=tuple(dict(file) for file in manifest["code"]),
        devices=tuple(map(str, manifest["devices"])),
        files=tuple(dict(file) for file in manifest["files"]),
        spent_s=float(manifest["spent_s"]),
        troubles=tuple(map(str, manifest["troubles"])),
        input=str(manifest["input"]),
    )


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in fields.items()}


_KILLED = ReplayFailure("signal", "killed", "it was terminated without a message")


def _nonfinite(fields: Mapping[str, Any]) -> tuple[ReplayFailure, Position]:
    path, line, _ = fields["place"] or ("", 0, "")
    failure = ReplayFailure(
        "nonfinite", "loss", f"the loss is {fields['value']}", str(path), int(line),
        operators=tuple(map(str, fields["operators"])),
    )  # fmt: skip
    return failure, position_of(fields["position"])


def failure_of(fields: Mapping[str, Any] | None) -> ReplayFailure | None:
    """Parse the failure that a process recorded."""
    if fields is None:
        return None
    place = fields["place"] or {}
    return ReplayFailure(
        kind=str(fields["kind"]),
        type=str(fields["type"]),
        message=str(fields["message"]),
        path=str(place.get("path", "")),
        line=int(place.get("line", 0)),
        function=str(place.get("function", "")),
        through=tuple(str(frame["path"]) for frame in fields["frames"]),
        operators=tuple(map(str, fields.get("operators", ()))),
        arguments=fields["arguments"],
    )


def position_of(fields: Mapping[str, Any]) -> Position:
    """Parse the position that a process recorded."""
    return Position(int(fields["steps"]), int(fields["backwards"]), int(fields["batches"]))


def losses_of(fields: Sequence[Any]) -> tuple[float, ...]:
    """Parse losses; values that are not finite are stored as words."""
    return tuple(map(float, fields))
