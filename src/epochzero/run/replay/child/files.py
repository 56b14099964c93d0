"""The files of a capture: names, compressed JSON, digests of the files next to the manifest.

``zlib`` is part of every Python; the interpreter of a job may have no other compressor.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

SCHEMA = "epochzero.capture/3"
MANIFEST, TENSORS = "manifest.json.gz", "tensors.safetensors"
MOST_BYTES = 1 << 28
"""Limit for decompressed JSON: larger files were not written by EpochZero."""
_OF_WORKER = re.compile(r"(worker-\d+-\d+\.json\.gz|drawn-\d+-\d+\.jsonl)\Z")


def failed_of(worker: str) -> str:
    """Name of the file in which a worker stores the batch that failed."""
    return f"worker-{worker}.json.gz"


def drawn_of(worker: str) -> str:
    """Name of the file in which a worker stores the random values that it has drawn, one per line."""
    return f"drawn-{worker}.jsonl"


def is_of_worker(name: str) -> bool:
    """Whether a file is one of the two kinds that workers write."""
    return _OF_WORKER.match(name) is not None


def may_grow(name: str) -> bool:
    """Whether lines may be appended to a file after the manifest: workers of a killed job may still write."""
    return name.startswith("drawn-")


def parts_of_workers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return ``bytes`` and ``sha256`` of each file that workers have written.

    Raises:
        OSError: a file cannot be read.
    """
    found = {}
    for path in sorted(folder.glob("*-*-*")):
        if is_of_worker(path.name):
            data = path.read_bytes()
            found[path.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return found


def write_json(path: Path, value: Any) -> None:
    """Write a value as compressed JSON.

    Raises:
        OSError: the file cannot be written.
    """
    text = json.dumps(value, allow_nan=False, default=str, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_json(path: Path) -> Any:
    """Read a compressed JSON file.

    Raises:
        ValueError, OSError, RecursionError: it is truncated, damaged or far too large.
    """
    try:
        with gzip.open(path) as file:
            text = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ValueError(f"it is truncated or modified: {error}") from error
    if len(text) > MOST_BYTES:
        raise ValueError("it is larger than expected")
    return json.loads(text)
