"""Fills in what only a release knows: where the project is hosted.

The repository has no address of its own, so none is written down. The release workflow sets
``EPOCHZERO_REPOSITORY`` to the address of the repository that it runs in. The links of the README,
which are relative, then lead to that repository, at the tag of the version; without the variable
they become plain text, since a relative link leads nowhere on a package index.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


class ProjectAddress(MetadataHookInterface):
    """Sets ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the ``project`` table of ``pyproject.toml``."""
        address = os.environ.get("EPOCHZERO_REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, address, f"v{metadata['version']}"),
        }
        metadata["urls"] = urls(address)


def with_absolute_links(text: str, address: str, tag: str) -> str:
    """The README with its relative links made absolute, or removed if there is no address."""
    link = rf"[\1]({address}/blob/{tag}/\2)" if address else r"\1"
    return RELATIVE_LINK.sub(link, text)


def urls(address: str) -> dict[str, str]:
    """The links that a package index shows."""
    if not address:
        return {}
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/main/docs",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
