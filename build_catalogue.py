"""Adds the compiled catalogue of signatures to a wheel, so that no start has to parse 1,400 files.

An editable installation has none: it compiles on first use, into the user's cache (`epochzero.compiled`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface[Any]):
    """Compiles by diagnosing: what a diagnosis stores is what the next one needs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling; ``version`` is "editable" or "standard"."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from epochzero import compiled
        from epochzero.diagnose import Diagnoser

        self._directory = TemporaryDirectory()
        compiled.use(Path(self._directory.name))
        Diagnoser()
        for item in Path(self._directory.name).iterdir():
            build_data["force_include"][str(item)] = f"epochzero/{compiled.BUILT.name}/{item.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what is in the wheel now."""
        if version != "editable":
            self._directory.cleanup()
