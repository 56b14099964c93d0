"""A report: a self-contained HTML page, the same as Markdown, and a file for each table and figure.

    DIR/report.html   report.md   tables/*.csv, *.parquet   figures/*.svg, *.png

All text may come from logs: it is escaped, and hidden characters are made visible (Boucher and Anderson, "Trojan
Source: Invisible Vulnerabilities", USENIX Security 2023).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unicodedata import category

from epochzero.errors import writing
from epochzero.markdown import escaped
from epochzero.reports.figures import Figure, inline_svg
from epochzero.reports.tables import (
    FEW_MARK,
    Cell,
    Column,
    Row,
    Table,
    shown,
    to_csv,
    write_parquet,
)

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
Part = str | Table | Figure
"""A paragraph, a table or a figure."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section with a heading; its paragraphs, tables and figures in order."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report.

    Attributes:
        title: its heading.
        lead: its result, in a few sentences.
        sections: in order.
    """

    title: str
    lead: str
    sections: Sequence[Section]

    @property
    def tables(self) -> list[Table]:
        """Return all tables, in order."""
        return [
            part for section in self.sections for part in section.parts if isinstance(part, Table)
        ]

    @property
    def figures(self) -> list[Figure]:
        """Return all figures, in order."""
        return [
            part for section in self.sections for part in section.parts if isinstance(part, Figure)
        ]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The result of a study.

    Attributes:
        report: for people.
        summary: the main numbers in their JSON form (``docs/json.md``).
    """

    report: ReportPage
    summary: Mapping[str, Any]


def write_report(report: ReportPage, folder: Path) -> list[Path]:
    """Write all files of a report.

    Args:
        report: the report.
        folder: directory to write to; created if missing. Files of the same names are replaced.

    Returns:
        The files. Without pyarrow, no Parquet files are written.

    Raises:
        InputError: a file cannot be written.
    """
    texts = {
        folder / "report.html": to_html(report),
        folder / "report.md": to_markdown(report),
        **{folder / "tables" / f"{table.name}.csv": to_csv(table) for table in report.tables},
        **{folder / "figures" / f"{figure.name}.svg": figure.svg for figure in report.figures},
    }
    with writing(folder):
        for name in ("tables", "figures"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8", newline="", errors="replace")
        pictures = [folder / "figures" / f"{figure.name}.png" for figure in report.figures]
        for path, figure in zip(pictures, report.figures, strict=True):
            path.write_bytes(figure.png)
    packed = [folder / "tables" / f"{table.name}.parquet" for table in report.tables]
    if find_spec("pyarrow") is None:
        return [*texts, *pictures]
    for path, table in zip(packed, report.tables, strict=True):
        write_parquet(table, path)
    return [*texts, *pictures, *packed]


# HTML


def to_html(report: ReportPage) -> str:
    """Return the page; it needs no network and no scripts."""
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    title = _text(report.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{title}</h1>\n<p class="lead">{_text(report.lead)}</p></header>\n'
        f"<main>\n{body_html(report)}\n</main>\n</body>\n</html>\n"
    )


def body_html(report: ReportPage) -> str:
    """Return contents and sections, for a page with its own head and style sheet."""
    contents = "".join(
        f'<li><a href="#{_anchor(section.title)}">{_text(section.title)}</a></li>'
        for section in report.sections
    )
    body = "\n".join(line for section in report.sections for line in _html_section(section))
    return f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n{body}'


def _text(text: str) -> str:
    """Escape text; characters that are invisible or reverse the line are shown by their numbers."""
    return escape("".join(f"U+{ord(t):04X}" if _is_hidden(t) else t for t in text))


def _is_hidden(character: str) -> bool:
    return character not in "\n\t" and category(character) in _HIDDEN


def _anchor(title: str) -> str:
    return "".join(text if text.isalnum() else "-" for text in title.lower())


def _html_section(section: Section) -> Iterator[str]:
    yield f'<section id="{_anchor(section.title)}"><h2>{_text(section.title)}</h2>'
    for part in section.parts:
        if isinstance(part, str):
            yield f"<p>{_text(part)}</p>"
        elif isinstance(part, Table):
            yield from _html_table(part)
        else:
            yield from _html_figure(part)
    yield "</section>"


def _html_figure(figure: Figure) -> Iterator[str]:
    drawn = inline_svg(figure).replace(
        "<svg ", f'<svg role="img" aria-label="{_text(figure.alt)}" ', 1
    )
    scrolled = f'<div class="scroll" tabindex="0">{drawn}</div>'
    yield f"<figure>{scrolled}<figcaption>{_text(figure.caption)}</figcaption></figure>"


def _html_table(table: Table) -> Iterator[str]:
    head = _text(table.head)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{head}"><table>'
    yield f"<caption>{head.replace('(n = ', '(n&nbsp;=&nbsp;')}</caption><thead><tr>"
    for column in table.columns:
        css = "" if column.is_text else " class=n"
        yield f'<th scope="col"{css}>{_text(column.title)}</th>'
    yield "</tr></thead><tbody>"
    for row in table.shown_rows:
        cells = (
            _html_cell(cell, column, few=table.is_few(row, column), first=at == 0)
            for at, (cell, column) in enumerate(zip(row, table.columns, strict=True))
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    for note in table.all_notes():
        yield f'<p class="soft">{_text(note)}</p>'


def _html_cell(cell: Cell, column: Column, *, few: bool, first: bool) -> str:
    text = _text(shown(cell, column))
    if few and cell is not None:
        text += f'<span class="few">{FEW_MARK}</span>'
    if column.kind in ("code", "identity"):
        text = f"<code>{text.replace('_', '_<wbr>')}</code>"
    css = "i" if column.kind == "identity" else "t" if column.is_text else "z" if cell == 0 else "n"
    return (
        f'<th scope="row" class="{css}">{text}</th>' if first else f'<td class="{css}">{text}</td>'
    )


# Markdown


def to_markdown(report: ReportPage) -> str:
    """Return the report as Markdown; it links the figure files next to it."""
    blocks = [f"# {_escaped(report.title)}", _escaped(report.lead)]
    for section in report.sections:
        blocks.append(f"## {_escaped(section.title)}")
        for part in section.parts:
            blocks += _markdown(part)
    return "\n\n".join(blocks) + "\n"


def _markdown(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield _escaped(part)
        return
    if isinstance(part, Figure):
        yield f"![{_escaped(part.alt)}](figures/{part.name}.svg)"
        yield f"*{_escaped(part.caption)}*"
        return
    yield f"**{_escaped(part.head)}**"
    heads = " | ".join(_escaped(column.title) for column in part.columns)
    rules = " | ".join("---" if column.is_text else "---:" for column in part.columns)
    rows = [_markdown_row(part, row) for row in part.shown_rows]
    yield "\n".join((f"| {heads} |", f"| {rules} |", *rows))
    for note in part.all_notes():
        yield _escaped(note)


def _markdown_row(table: Table, row: Row) -> str:
    cells = []
    for cell, column in zip(row, table.columns, strict=True):
        few = table.is_few(row, column) and cell is not None
        cells.append(_escaped(shown(cell, column)) + (f" {FEW_MARK}" if few else ""))
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return escaped(" ".join(text.split()))
