"""What the scripts that write generated pages share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

__all__ = ["plain", "written"]


def plain(text: str) -> str:
    """Escape what Markdown would read as a link or a footnote."""
    return text.replace("](", "]\\(").replace("[^", "\\[^")


def written(pages: Iterable[tuple[str, str]], folder: Path, description: str | None) -> int:
    """Writes the pages of a folder and takes others away; with ``--check`` it only compares.

    Args:
        pages: file name and text of each.
        folder: where they lie.
        description: of the script, for its help.

    Returns:
        The exit status: 1 when ``--check`` finds pages that are not current.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether pages are current")
    check = parser.parse_args().check
    wanted = dict(pages)
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    if check:
        return 0 if wanted == present else 1
    folder.mkdir(exist_ok=True)
    for name in present.keys() - wanted.keys():
        (folder / name).unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0
