"""Reads a capture with distrust: nothing of it is code, and nothing is believed before it is checked."""

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
    """The capture of the process of a job that failed first.

    Args:
        folder: of an attempt, or of its captures.

    Raises:
        InputError: there is none, or it is cut off, damaged or of another version.
    """
    root = folder / CAPTURE_FOLDER if (folder / CAPTURE_FOLDER).is_dir() else folder
    paths = sorted(root.glob(f"*/{MANIFEST}"))
    if not paths:
        raise InputError(f"{folder}: contains no capture; {_UNCAPTURED}")
    job = _object(root / JOB_FILE, _read_job)
    told = [(path, _object(path, read_json)) for path in paths]
    for path, manifest in told:
        if manifest.get("schema") != SCHEMA:
            raise InputError(f"{path}: {manifest.get('schema')!r} is not {SCHEMA}")
    try:
        # What was ended from outside failed after another, or was killed.
        path, first = min(told, key=lambda one: (_order(one[1]), one[1]["time"]))
        # Those of the other ranks are replayed with it.
        for one, manifest in told:
            _check_parts(one.parent, manifest["parts"])
        return _capture(path.parent, first, job)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{root}: the capture is damaged: {type(error).__name__}: {error}") from error  # fmt: skip


def _order(manifest: Mapping[str, Any]) -> int:
    failure = manifest["failure"] or (manifest["nonfinite"] and {"kind": "nonfinite"})
    return 3 if failure is None else {"signal": 2, "exit": 1}.get(failure["kind"], 0)


def _read_job(path: Path) -> Any:
    if path.stat().st_size > _MOST_JOB_BYTES:
        raise ValueError("it is larger than expected")
    return json.loads(path.read_bytes())


def _object(path: Path, read: Callable[[Path], Any]) -> dict[str, Any]:
    try:
        told = read(path)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: the capture is damaged: {error}") from error
    if not isinstance(told, dict):
        raise InputError(f"{path}: the capture is damaged: it is not a JSON object")
    return told


def _check_parts(folder: Path, parts: Mapping[str, Any]) -> None:
    """That the files are those that were written.

    Raises:
        InputError: one is not.
        KeyError, TypeError: the table of them is damaged.
    """
    for name, told in parts.items():
        if name != TENSORS and not is_of_worker(name):
            raise InputError(f"{folder}: the capture contains the invalid file name {name!r}")
        path = folder / name
        try:
            with path.open("rb") as file:
                _check_part(path, file, told)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: the capture is damaged: {error}") from error


def _check_part(path: Path, file: BinaryIO, told: Mapping[str, Any]) -> None:
    size = path.stat().st_size
    if size < told["bytes"] or (size > told["bytes"] and not may_grow(path.name)):
        raise InputError(f"{path}: has {size:,} bytes of {told['bytes']:,}: it is truncated or modified")  # fmt: skip
    if path.name == TENSORS:
        read_header(file)
        file.seek(0)
    if _digest(file, told["bytes"]) != told["sha256"]:
        raise InputError(f"{path}: is modified: its digest differs")


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


def _texts(told: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in told.items()}


_KILLED = ReplayFailure("signal", "killed", "it was terminated without a message")


def _nonfinite(told: Mapping[str, Any]) -> tuple[ReplayFailure, Position]:
    path, line, _ = told["place"] or ("", 0, "")
    failure = ReplayFailure(
        "nonfinite", "loss", f"the loss is {told['value']}", str(path), int(line),
        operators=tuple(map(str, told["operators"])),
    )  # fmt: skip
    return failure, position_of(told["position"])


def failure_of(told: Mapping[str, Any] | None) -> ReplayFailure | None:
    """The failure that a process has told of."""
    if told is None:
        return None
    place = told["place"] or {}
    return ReplayFailure(
        kind=str(told["kind"]),
        type=str(told["type"]),
        message=str(told["message"]),
        path=str(place.get("path", "")),
        line=int(place.get("line", 0)),
        function=str(place.get("function", "")),
        through=tuple(str(frame["path"]) for frame in told["frames"]),
        operators=tuple(map(str, told.get("operators", ()))),
        arguments=told["arguments"],
    )


def position_of(told: Mapping[str, Any]) -> Position:
    """The position that a process has told of."""
    return Position(int(told["steps"]), int(told["backwards"]), int(told["batches"]))


def losses_of(told: Sequence[Any]) -> tuple[float, ...]:
    """Losses, of which those that are not finite are words."""
    return tuple(map(float, told))
