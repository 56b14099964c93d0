"""The site contains every page of `docs`, and its terminal shows what the program prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GENERATED = {"reference/commands", "reference/api"}


def test_the_navigation_lists_every_page() -> None:
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.S)
    entries = {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert entries - GENERATED == pages | {
        f"{name}/README" for name in ("catalog", "decisions", "rules")
    }


def test_the_terminal_shows_what_the_program_prints() -> None:
    svg = runpy.run_path(str(DOCS / "terminal.py"))["svg"]()
    assert (DOCS / "terminal.svg").read_text(encoding="utf-8") == svg
