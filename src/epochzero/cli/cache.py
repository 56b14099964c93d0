"""Where what can be computed again is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The user's folder of caches (XDG Base Directory Specification); None where there is no home."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(told) if os.path.isabs(told) else Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        return None
    return root / "epochzero"
