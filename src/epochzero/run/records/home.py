"""Where EpochZero keeps what it knows of jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from epochzero.platform import user_id


def homes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The folder where jobs are kept, then what takes its place where it cannot be written.

    EPOCHZERO_HOME, else ``epochzero`` in XDG_STATE_HOME, which is ``~/.local/state`` by default.
    """
    chosen = environment.get("EPOCHZERO_HOME")
    state = environment.get("XDG_STATE_HOME") or "~/.local/state"
    home = Path(os.path.expanduser(chosen or os.path.join(state, "epochzero")))
    temporary = Path(environment.get("TMPDIR") or "/tmp")
    return home.absolute(), temporary / f"epochzero-{user_id()}"
