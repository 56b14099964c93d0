"""Settings of the documentation site (Sphinx, MyST, Furo): `make site` builds it into `build/site`.

Generated from the code: the help of all commands, and the docstrings of the public names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from sphinx.application import Sphinx

import epochzero
from epochzero.cli import commands

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
REPOSITORY = os.environ.get("EPOCHZERO_REPOSITORY", "").rstrip("/")
"""Address of the repository; without one, links to files outside of `docs` become plain text."""
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
SHARED = re.compile(r"^\s*\w+(?:, \w+)+: ")
WIDTH = 88
"""Columns of the screens of help: what the theme shows without scrolling."""
FENCE = re.compile(r"(?ms)^(```.*?^```$)")

project = "EpochZero"
copyright = "EpochZero contributors"
release = epochzero.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = [".md"]
exclude_patterns = ["__pycache__"]
html_theme = "furo"
html_title = "EpochZero"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_ivar = True
autodoc_member_order = "bysource"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]


def setup(app: Sphinx) -> None:
    """Register the generated pages and the treatment of links."""
    app.connect("builder-inited", _generate)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _join_names, priority=100)


def _generate(_: Sphinx) -> None:
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    helps = "\n".join(_help(commands, "epochzero"))
    (folder / "commands.md").write_text(f"# Commands\n\nThe output of `--help`.\n\n{helps}")
    (folder / "api.md").write_text(f"# Python API\n\n{_api()}")


def _help(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            if found is not None and not found.hidden:
                yield from _help(found, f"{name} {part}")


def _api() -> str:
    entries = []
    for name in sorted(epochzero.__all__):
        one = getattr(epochzero, name)
        if isinstance(one, type):
            entries.append(f".. autoclass:: epochzero.{name}\n   :members:\n")
        elif callable(one):
            entries.append(f".. autofunction:: epochzero.{name}\n")
    return "```{eval-rst}\n" + "\n".join(entries) + "\n```\n"


def _read(_: Sphinx, page: str, source: list[str]) -> None:
    """Point links that leave `docs` to the repository, and list the pages of whole directories."""
    folder = (DOCS / page).parent
    parts = FENCE.split(source[0])
    parts[::2] = (LINK.sub(lambda link: _link(link, folder), text) for text in parts[::2])
    source[0] = "".join(parts)
    if Path(page).name == "README":
        source[0] += "\n```{toctree}\n:maxdepth: 1\n:glob:\n\n*\n```\n"


def _join_names(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Make the names that share a description one word, since Napoleon reads `a, b: ...` as `b` of the type `a`."""
    for number, line in enumerate(lines):
        lines[number] = SHARED.sub(lambda names: names[0].replace(", ", ","), line)


def _link(link: re.Match[str], folder: Path) -> str:
    text, anchor = link[1], link[3] or ""
    target = (folder / link[2]).resolve()
    if (target / "README.md").is_file() and target.is_relative_to(DOCS):
        return f"[{text}]({link[2].rstrip('/')}/README.md{anchor})"
    if target.is_relative_to(DOCS) and target.suffix in (".md", ".png", ".svg"):
        return link[0]
    if not REPOSITORY:
        return text
    kind = "tree" if target.is_dir() else "blob"
    return f"[{text}]({REPOSITORY}/{kind}/main/{target.relative_to(ROOT)}{anchor})"
