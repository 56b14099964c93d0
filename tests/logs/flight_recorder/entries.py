"""Dumps written by hand after the recorder's documented format, for what needs GPUs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


def entry(
    number: int,
    operation: str = "nccl:all_reduce",
    *,
    group: str = "0",
    description: str = "default_pg",
    state: str = "completed",
    line: int = 10,
    sizes: Sequence[Sequence[int]] = ((4,),),
    p2p: bool = False,
) -> Entry:
    """One entry, as the recorder's version 2.4 writes it."""
    return {
        "frames": [
            {"name": "inner", "filename": "/x/site-packages/torch/distributed/c10d.py", "line": 1},
            {"name": "step", "filename": "/home/u/train.py", "line": line},
        ],
        "record_id": number,
        "pg_id": 0,
        "process_group": (group, description),
        "collective_seq_id": 0 if p2p else number,
        "p2p_seq_id": number if p2p else 0,
        "op_id": number,
        "profiling_name": operation,
        "time_created_ns": 1_700_000_000_000_000_000 + number,
        "input_sizes": [list(size) for size in sizes],
        "input_dtypes": ["Float"] * len(sizes),
        "output_sizes": [list(size) for size in sizes],
        "output_dtypes": ["Float"] * len(sizes),
        "state": state,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": p2p,
    }


def write(
    folder: Path,
    ranks: Mapping[int, Sequence[Entry]],
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    as_json: bool = False,
) -> Path:
    """A folder with one dump for each rank.

    Args:
        groups: process group -> its ranks; when None, group ``0`` with those of ``ranks``.
    """
    config = {
        name: {
            "name": name,
            "desc": "default_pg" if name == "0" else name,
            "ranks": str(list(members)),
        }
        for name, members in (groups or {"0": sorted(ranks)}).items()
    }
    for rank, entries in ranks.items():
        content = {"version": "2.4", "pg_config": config, "pg_status": {}, "entries": list(entries)}
        path = folder / f"nccl_trace_rank_{rank}"
        path.write_bytes(json.dumps(content).encode() if as_json else pickle.dumps(content, 2))
    return folder
