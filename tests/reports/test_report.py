"""Tables, figures and the report in each of its forms."""

from __future__ import annotations

import csv
import io
import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.reports.figures import Figure, bars, cumulative, heat, inline_svg, panels
from epochzero.reports.page import ReportPage, Section, to_html, to_markdown, write_report
from epochzero.reports.tables import Column, Table, shown, to_csv

HOSTILE = '<script>alert("1")</script> | [a](http://x) `b` =1+1 山 \x1b[31m \u202eb'
TABLE = Table(
    "people",
    "Failures by user",
    (
        Column("User"),
        Column("No.", "count"),
        Column("%", "share", cases="No."),
        Column("95 % interval", "interval", cases="No."),
        Column("GPU h", "number"),
    ),
    ((HOSTILE, 40, 0.8, (0.6, 0.9), 1234.5), ("=cmd()", 9, 0.18, (0.1, 0.3), None)),
    50,
    notes=("A note.",),
)


@pytest.fixture(scope="module")
def report() -> ReportPage:
    drawn = bars("bar", "Bars", ["a", HOSTILE], {"x": [0.2, 0.8], "y": [0, 1]}, axis="%")
    return ReportPage("Of <b>", "Lead.", [Section("One & all", ["Text <i>.", TABLE, drawn])])


class _Page(HTMLParser):
    """Tags that are open, and whether each is closed; ids and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        for name, value in attrs:
            assert not name.startswith("on"), "a script in an attribute"
            if name in ("src", "href", "xlink:href"):
                assert (value or "").startswith("#"), "the page needs nothing else"
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(report: ReportPage) -> None:
    html = to_html(report)
    page = _Page()
    page.feed(html)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags
    assert not re.search(r"url\((?!#)|@import", html)
    assert page.tags.count("caption") == 1
    assert 'scope="col"' in html
    assert 'scope="row"' in html
    assert not re.search("[\x1b\u202e]", html)
    assert "U+001B[31m" in html
    assert not re.search(" style=", html)
    assert html.count("<style") == 1
    assert 'role="img" aria-label="Bars of %; x: ' in html
    assert "(n&nbsp;=&nbsp;50 failures)" in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_few_cases_are_marked(report: ReportPage) -> None:
    assert "18.0 %<span" in to_html(report)
    assert "80.0 %<span" not in to_html(report)
    assert "18.0 % †" in to_markdown(report)
    assert "† based on fewer than 10 failures." in to_markdown(report)


def test_markdown_shows_text_as_text(report: ReportPage) -> None:
    text = to_markdown(report)
    assert "<script>" not in text
    assert r"\[a\](http:&#8203;//x)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


@given(st.text(min_size=1, max_size=20))
def test_no_text_of_a_csv_is_a_formula(text: str) -> None:
    table = Table("t", "T", (Column("A"), Column("B", "number")), ((text, -1.5),), 1)
    _, (said, number) = list(csv.reader(io.StringIO(to_csv(table), newline="")))
    assert not said.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert said.removeprefix("'") == text.removeprefix("'")
    assert number == "-1.5"


def test_all_files_are_written(report: ReportPage, tmp_path: Path) -> None:
    files = write_report(report, tmp_path / "new" / "report")
    names = {path.relative_to(tmp_path / "new" / "report").as_posix() for path in files}
    assert names == {
        "report.html", "report.md", "tables/people.csv", "tables/people.parquet",
        "figures/bar.svg", "figures/bar.png",
    }  # fmt: skip
    assert all(path.stat().st_size for path in files)
    table = pyarrow.parquet.read_table(tmp_path / "new/report/tables/people.parquet")
    assert table.column("95 % interval, low").to_pylist() == [0.6, 0.1]
    assert table.column("GPU h").to_pylist() == [1234.5, None]
    assert table.column("User").to_pylist()[1] == "=cmd()"


def test_a_folder_that_cannot_be_made_is_told_of(report: ReportPage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(report, tmp_path / "file" / "report")


def test_rows_beyond_the_most_are_in_the_files_only() -> None:
    table = Table("t", "T", (Column("A"),), tuple((str(n),) for n in range(30)), 30, most=20)
    assert len(table.shown_rows) == 20
    assert list(table.all_notes()) == ["t.csv contains 10 more rows."]
    assert to_csv(table).count("\n") == 31


def test_numbers_are_written_for_people() -> None:
    number = Column("x", "number")
    assert [shown(one, number) for one in (None, 0.5, 12.34, 1234.5)] == [
        "–",
        "0.50",
        "12.3",
        "1,234",
    ]
    assert shown((0.1, 0.25), Column("x", "interval")) == "10.0–25.0 %"


def _figures() -> list[Figure]:
    return [
        bars("one", "One", ["$x^{", "山"], {"s": [1, 0]}, axis="n", percent=False),
        heat("two", "Two", ["a"], ["a", "b"], [[3, 1]], down="label", across="diagnosis"),
        cumulative("three", "Three", {"s": ([0.1], [100.0])}, x="m", y="%", alt="Alt."),
        panels("four", "Four", [date(2026, 1, 5)], {"s": [0], "t": [30]}, y="n", alt="Alt."),
    ]


def test_figures_are_the_same_each_time_and_take_the_page_s_ink() -> None:
    for one, again in zip(_figures(), _figures(), strict=True):
        assert (one.svg, one.png) == (again.svg, again.png)
        assert one.png.startswith(b"\x89PNG")
        inline = inline_svg(one)
        assert inline.startswith("<svg")
        assert "#000000" not in inline
        assert "var(--ink)" in inline
        assert "style" not in inline
        assert 'stroke-linejoin="round"' in inline
        assert not re.search(r'fill="#ffffff"[^>]*/>\s*</g>\s*<g id="[^"]*-axes_1', inline)
