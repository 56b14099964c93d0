"""The files of a capture: their names, JSON that is compressed, and digests of what lies beside the manifest.

``zlib`` is in every Python; a job's own may have nothing else.
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
"""Of JSON, decompressed: what is larger is none of ours."""
_OF_WORKER = re.compile(r"(worker-\d+-\d+\.json\.gz|drawn-\d+-\d+\.jsonl)\Z")


def failed_of(worker: str) -> str:
    """The file of what a worker of a loader had in work when it failed."""
    return f"worker-{worker}.json.gz"


def drawn_of(worker: str) -> str:
    """The file of what a worker of a loader has drawn from chance, a line each."""
    return f"drawn-{worker}.jsonl"


def is_of_worker(name: str) -> bool:
    """Whether a file is one of the two kinds that workers write."""
    return _OF_WORKER.match(name) is not None


def may_grow(name: str) -> bool:
    """Whether lines may be added to a file after the manifest: by a worker of a job that was killed."""
    return name.startswith("drawn-")


def parts_of_workers(folder: Path) -> dict[str, dict[str, Any]]:
    """``bytes`` and ``sha256`` of each file that workers have left.

    Raises:
        OSError: one cannot be read.
    """
    found = {}
    for path in sorted(folder.glob("*-*-*")):
        if is_of_worker(path.name):
            data = path.read_bytes()
            found[path.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return found


def write_json(path: Path, told: Any) -> None:
    """Writes a value as compressed JSON.

    Raises:
        OSError: the file cannot be written.
    """
    text = json.dumps(told, allow_nan=False, default=str, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_json(path: Path) -> Any:
    """The value of such a file.

    Raises:
        ValueError, OSError, RecursionError: it is cut off, damaged or far too large.
    """
    try:
        with gzip.open(path) as file:
            text = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ValueError(f"it is truncated or modified: {error}") from error
    if len(text) > MOST_BYTES:
        raise ValueError("it is larger than expected")
    return json.loads(text)
