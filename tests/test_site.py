"""The site contains every page of `docs`, and its terminal shows what the program prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
links = runpy.run_path(str(DOCS / "links.py"))["broken"]
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


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide/index.html").write_text('<h1 id="begin">Guide</h1><a href="#begin">here</a>')
    (tmp_path / "one.svg").write_text("<svg/>")
    page = tmp_path / "index.html"
    page.write_text(
        '<a href="guide/">a</a> <a href="/guide/index.html#begin">b</a> <img src="one.svg">'
        '<a href="https://example.org/x#y">c</a> <a href="mailto:a@example.org">d</a> <a name="e">'
    )
    assert list(links(tmp_path)) == []
    page.write_text(
        '<a href="missing.html">a</a>\n<a href="guide/#end">b</a>\n<img src="two.svg">\n<a href="../x">c</a>'
    )
    assert list(links(tmp_path)) == [
        "index.html:1: missing.html: no such file",
        "index.html:2: guide/#end: no such anchor",
        "index.html:3: two.svg: no such file",
        "index.html:4: ../x: no such file",
    ]
