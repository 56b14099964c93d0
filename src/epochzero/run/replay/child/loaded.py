"""Code that this process has loaded: packages with their versions, and the user's own files."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from epochzero.run.watch.child.places import is_user

MOST_SOURCES = 1000
_OURS = "epochzero"
_LIBRARY = re.compile(rf"-packages/|{re.escape(os.path.dirname(os.__file__))}/").search


def packages() -> dict[str, str]:
    """Version of each imported third-party package, by module, if it has one."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        other = "." in name or name in sys.stdlib_module_names or name == _OURS
        if not other and _LIBRARY(_file(module)) and (version := _version(name, module)):
            found[name] = version
    return found


def sources(script: str) -> list[dict[str, Any]]:
    """``path``, ``sha256`` and modification time of the user's own files in their current state.

    Args:
        script: path of the program, which Python forgets after running it.
    """
    return list(_sources(script))[:MOST_SOURCES]


def _sources(script: str) -> Iterator[dict[str, Any]]:
    files = {script, *(_file(module) for module in list(sys.modules.values()))}
    # Nearly all of thousands of modules can be excluded by a part of their path.
    paths = (os.path.abspath(file) for file in files if file.endswith(".py") and not _LIBRARY(file))
    for path in sorted(path for path in paths if is_user(path)):
        with suppress(OSError), open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
            yield {"path": path, "modified": os.fstat(file.fileno()).st_mtime, "sha256": digest}


def _file(module: ModuleType) -> str:
    """File of a module, read without triggering its lazy loading."""
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""


def _version(name: str, module: ModuleType) -> str:
    """Installed version, otherwise the version that the module states."""
    from importlib import metadata

    with suppress(Exception):
        return metadata.version(name)
    stated = getattr(module, "__dict__", {}).get("__version__")
    return stated if isinstance(stated, str) else ""
