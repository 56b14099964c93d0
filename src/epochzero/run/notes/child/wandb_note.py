"""Puts a note into the runs of Weights & Biases that a job made: configuration, a tag, and its text in the notes.

Source: the documentation of W&B, "Resume a run" and "wandb.init"; a run is identified by the file that
its library writes locally, online and offline. The run stays failed: it is finished with exit code 1.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MOST_RUNS = 8
_RUN_BYTES = 1 << 20
"""The run is described at the beginning."""
_HEADER_BYTES = 7
_BLOCK_BYTES = 1 << 15
_FULL, _FIRST, _LAST = 1, 2, 4


def main() -> int:
    """Reads the note, finds the runs, writes; the exit code."""
    note = json.load(sys.stdin)
    try:
        import wandb
        from wandb.proto import wandb_internal_pb2
    except ImportError as error:
        print(f"wandb is not installed: {error}", file=sys.stderr)
        return 3
    folders = [os.environ.get("WANDB_DIR", ""), *note["folders"]]
    found = []
    for file in _files([folder for folder in folders if folder], note["since"]):
        run = _recorded(file, vars(wandb_internal_pb2)["Record"])
        if run is not None and run.run_id not in found:
            _write(wandb, run, file, note)
            found.append(run.run_id)
    if not found:
        print("no Weights & Biases run of the job was found", file=sys.stderr)
        return 1
    print("run " + ", ".join(found))
    return 0


def _files(folders: list[str], since: float) -> Iterator[Path]:
    """The newest files of runs that were written since then."""
    files = {
        file: file.stat().st_mtime
        for folder in dict.fromkeys(folders)
        for root in ("wandb", ".wandb")
        for file in Path(folder, root).glob("*run-*/run-*.wandb")
    }
    newest = sorted((file for file in files if files[file] >= since), key=files.__getitem__)
    yield from newest[-_MOST_RUNS:]


def _recorded(file: Path, record: Any) -> Any:
    """The run as its file describes it: identity, project, notes and tags."""
    for data in records_in(file.read_bytes()[:_RUN_BYTES]):
        read = record()
        read.ParseFromString(data)
        if read.WhichOneof("record_type") == "run":
            return read.run
    return None


def records_in(data: bytes) -> Iterator[bytes]:
    """The records of a run's file, which has the format of LevelDB's logs; a cut-off one is left out.

    Source: https://github.com/google/leveldb/blob/main/doc/log_format.md, behind a header of 7 bytes.
    """
    at, begun = _HEADER_BYTES, b""
    while at + _HEADER_BYTES <= len(data):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _HEADER_BYTES:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        piece = data[at + _HEADER_BYTES : at + _HEADER_BYTES + size]
        at += _HEADER_BYTES + size
        begun = piece if kind in (_FULL, _FIRST) else begun + piece
        if kind in (_FULL, _LAST) and len(piece) == size:
            yield begun


def _write(wandb: Any, recorded: Any, file: Path, note: dict[str, Any]) -> None:
    """Resumes the run, adds the note, and finishes it as failed."""
    category = f"epochzero:{note['tags']['category']}"
    run = wandb.init(
        id=recorded.run_id,
        project=recorded.project or None,
        entity=recorded.entity or None,
        notes=f"{recorded.notes}\n\n{note['text']}".strip(),
        tags=[*recorded.tags, category],
        dir=str(file.parents[2]),
        mode="offline" if file.parent.name.startswith("offline-") else "online",
        resume="allow",
        settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
    )
    run.config.update(
        {f"epochzero.{name}": value for name, value in note["tags"].items()}, allow_val_change=True
    )
    run.finish(exit_code=1)


if __name__ == "__main__":
    raise SystemExit(main())
