"""Which collectives the ranks have called, from the flight recorders in their processes (`observers.child.collectives`).

Format and comparison of dumps: `epochzero.logs.flight_recorder`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.injected.companions import Companion
from epochzero.run.observers.child.collectives import COLLECTIVES_FOLDER

if TYPE_CHECKING:
    from epochzero.logs.flight_recorder import Dump

COLLECTIVES_COMPANION = Companion("torch", "epochzero.run.observers.child.collectives:begin_torch")


def ask_for_dumps(folder: Path, pids: Iterable[int]) -> None:
    """Asks processes for dumps, which they write within milliseconds unless C code holds their interpreter's lock.

    Args:
        folder: of the attempt.
        pids: of ranks; those without a recorder are left out.
    """
    for pid in pids:
        own = folder / COLLECTIVES_FOLDER / str(pid)
        with suppress(OSError, ValueError):
            for earlier in own.parent.glob(f"{pid}.trace_*.json"):
                earlier.unlink()
            number, inode = own.read_text("ascii").split()
            pipe = f"/proc/{pid}/fd/{int(number)}"
            # The job may have closed the descriptor and opened another file or pipe under its number.
            if os.readlink(pipe) == f"pipe:[{inode}]":
                descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                try:
                    os.write(descriptor, b"\n")
                finally:
                    os.close(descriptor)


def read_dumps(folder: Path, pids: Iterable[int]) -> Mapping[int, Dump]:
    """Process -> its dump, of those that have answered."""
    from epochzero.logs.flight_recorder import read_dump

    found = {}
    for pid in pids:
        for path in (folder / COLLECTIVES_FOLDER).glob(f"{pid}.trace_*.json"):
            with suppress(InputError):
                found[pid] = read_dump(path)
    return found
