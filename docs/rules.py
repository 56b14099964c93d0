"""Writes ``docs/rules``: a page for each category, with the rules that predict it, made from them.

python docs/rules.py           # write the pages
python docs/rules.py --check   # exit 1 if they are not up to date
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pages import plain, written

from epochzero import taxonomy
from epochzero.check.rules import Case, Rule, builtin

FOLDER = Path(__file__).resolve().parent / "rules"


def pages() -> Iterator[tuple[str, str]]:
    """File name and text of every page."""
    order = list(taxonomy.categories())
    rules = sorted(builtin(), key=lambda rule: order.index(rule.category))
    categories = [(name, list(group)) for name, group in groupby(rules, key=_category)]
    rows = [
        f"| [`{rule.id}`]({name}.md#{rule.id}) | {rule.title} | {_title(name)} |"
        for name, group in categories
        for rule in group
    ]
    yield (
        "README.md",
        "\n".join(
            [
                "# The rules of check",
                "",
                f"{len(rules)} rules; [how they are used](../check.md).",
                "",
                "| rule | reports | predicts |",
                "|---|---|---|",
                *rows,
                "",
            ]
        ),
    )
    for name, group in categories:
        yield f"{name}.md", "\n".join([f"# {_title(name)}", "", *map(_entry, group)])


def _category(rule: Rule) -> str:
    return rule.category


def _title(category: str) -> str:
    return taxonomy.categories()[category].title


def _entry(rule: Rule) -> str:
    lines = [
        f"## {rule.id}",
        "",
        f"{plain(rule.title)}.",
        "",
        plain(rule.why),
        "",
        f"**Fix.** {plain(rule.fix)}",
        "",
        f"**Source.** {plain(rule.source)}.",
        "",
        *_case("Found", next(case for case in rule.cases if case.is_caught)),
        *_case("Ignored", next(case for case in rule.cases if not case.is_caught)),
    ]
    return "\n".join(lines)


def _case(label: str, case: Case) -> list[str]:
    """A case as code; the target of the case too, since what is wrong depends on it."""
    lines = [f"{label}:", "", "```python"]
    for name, text in case.files.items():
        lines += [f"# {name}"] if len(case.files) > 1 else []
        for number, line in enumerate(text.splitlines(), 1):
            mark = "  # <- here" if name == case.path and number == case.line else ""
            lines.append(f"{line}{mark}")
    lines += ["```", ""]
    if case.command != ("python", "train.py"):
        lines += ["run as", "", "```text", shlex.join(case.command), "```", ""]
    if case.target:
        lines += ["on a target with", "", "```toml", case.target.strip(), "```", ""]
    return lines


if __name__ == "__main__":
    sys.exit(written(pages(), FOLDER, __doc__))
