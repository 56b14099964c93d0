"""Check the links of the built site: every file and anchor of the site that a page names exists.

    python docs/links.py build/site

Sphinx reports links of Markdown that lead nowhere. This also reads what raw HTML, themes and generated pages link.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken"]


class _Page(HTMLParser):
    """The links of a page, with their lines, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[tuple[int, str]] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append((self.getpos()[0], value))


def broken(site: Path) -> Iterator[str]:
    """The links that lead nowhere, each as a line that names the page.

    Args:
        site: directory of the built site.
    """
    site = site.resolve()
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (
                base.joinpath(unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            )
            target = target / "index.html" if target.is_dir() else target
            if not target.is_relative_to(site) or not target.is_file():
                problem = "no such file"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                problem = "no such anchor"
            else:
                continue
            yield f"{path.relative_to(site)}:{line}: {link}: {problem}"


def main() -> int:
    """Print the broken links of the site in the first argument; 1 if there are any, or no page."""
    site = Path(sys.argv[1])
    problems = list(broken(site))
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems or not any(site.rglob("*.html")) else 0


if __name__ == "__main__":
    sys.exit(main())
