"""Writes ``docs/catalog``: a page for each family of signatures, made from the signatures, and one
for the borders between categories.

python docs/catalog.py           # write the pages
python docs/catalog.py --check   # exit 1 if they are not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pages import plain, written

from epochzero import taxonomy
from epochzero.diagnose.catalog import BUILTIN, Signature, load_folder

FOLDER = Path(__file__).resolve().parent / "catalog"


def pages() -> Iterator[tuple[str, str]]:
    """File name and text of every page."""
    signatures = sorted(load_folder(BUILTIN), key=lambda s: s.name)
    families = [(name, list(group)) for name, group in groupby(signatures, key=_family)]
    rows = [f"| [{name}]({name}.md) | {len(group)} |" for name, group in families]
    yield (
        "README.md",
        "\n".join(
            [
                "# The catalogue of signatures",
                "",
                f"{len(signatures)} signatures; [what a signature is](../signatures.md).",
                "",
                "| family | signatures |",
                "|---|---|",
                *rows,
                "",
                "[Borders between categories](borders.md) define which of two similar categories applies.",
                "",
            ]
        ),
    )
    yield "borders.md", _borders()
    for name, group in families:
        yield f"{name}.md", "\n".join([f"# {name}", "", *map(_entry, group)])


def _borders() -> str:
    lines = ["# Borders between categories", ""]
    lines += [
        "One question decides between two categories, phases, root causes or retries that are easily confused.",
        "",
    ]
    for border in sorted(taxonomy.borders(), key=lambda b: (b.field, b.yes, b.no)):
        field = "" if border.field == "category" else f" ({border.field.replace('_', ' ')})"
        lines += [f"## {border.yes} or {border.no}{field}", "", border.question, ""]
        lines += [f"Yes, `{border.yes}`:", "", "```text", border.yes_example.strip(), "```", ""]
        lines += [f"No, `{border.no}`:", "", "```text", border.no_example.strip(), "```", ""]
    return "\n".join(lines)


def _family(signature: Signature) -> str:
    return signature.name.split("/", 1)[0]


def _entry(signature: Signature) -> str:
    facts = [
        signature.role,
        signature.category,
        signature.root_cause,
        signature.phase,
        f"retry: {signature.retry}" if signature.retry else "",
    ]
    lines = [
        f"## {signature.title}",
        "",
        f"`{signature.name}` · {' · '.join(fact for fact in facts if fact)}",
        "",
        plain(signature.meaning),
        "",
    ]
    lines += [f"{number}. {plain(fix)}" for number, fix in enumerate(signature.fixes, 1)]
    if signature.fixes:
        lines.append("")
    lines += ["```text", signature.examples[0].log.strip("\n"), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(written(pages(), FOLDER, __doc__))
