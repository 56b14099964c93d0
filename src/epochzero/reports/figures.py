"""Figures of a report, drawn by matplotlib: bars, points, steps, curves, panels and heat maps, as SVG and PNG.

Colors are those of Okabe and Ito (Color Universal Design, 2008) that contrast with both white and black; series also
differ in hatches or dashes. Text is converted to paths, so that a figure looks the same everywhere. Files have a white
background; within a page, a figure uses the page's colors.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import import_module
from io import BytesIO
from typing import Any

from epochzero.errors import InputError

WIDTH_INCHES = 5.6
PNG_DPI = 200
INK = "#000000"
"""Color of text and axes."""
EDGE = "#c9ced6"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
HATCHES = ("", "////", "....", "xxxx", "----")
MARKERS = ("o", "D", "s", "^", "v")
DASHES = ("-", "--", "-.", ":", (0, (1, 1, 4, 1)))
_LONGEST_LABEL = 34

Interval = tuple[float, float]
Point = tuple[float, Interval | None]
"""A value with its interval, if it has one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure.

    Attributes:
        name: of its files, without suffix; unique in a report.
        caption: what it shows.
        alt: alternative text with the main numbers.
        svg: on white, with text as paths.
        png: on white, at 200 dots per inch.
    """

    name: str
    caption: str
    alt: str
    svg: str
    png: bytes


def require_matplotlib() -> None:
    """Check that matplotlib is installed, before any work is done.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise InputError("Figures require matplotlib: pip install 'epochzero[study]'") from error


def bars(
    name: str,
    caption: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    axis: str,
    percent: bool = True,
    intervals: Mapping[str, Sequence[Interval | None]] | None = None,
) -> Figure:
    """Draw horizontal bars: a group for each label from the top, and in it a bar for each series.

    Args:
        name, caption: of the figure.
        labels: of the groups.
        series: values of each series, one per label; shares of 0 to 1 if ``percent``.
        axis: title of the value axis.
        percent: format values as percent.
        intervals: intervals of a series, drawn as lines; may be missing for series or values.
    """
    height = 0.9 + len(labels) * (0.12 + 0.17 * len(series))
    figure, axes = _canvas(height)
    thick = 0.8 / len(series)
    scale = 100 if percent else 1
    for number, (title, values) in enumerate(series.items()):
        places = [at + number * thick for at in range(len(labels))]
        axes.barh(
            places, [scale * value for value in values], thick * 0.92, label=title,
            color=COLORS[number % len(COLORS)], hatch=HATCHES[number % len(HATCHES)],
            edgecolor="white", linewidth=0,
        )  # fmt: skip
        within = (intervals or {}).get(title, [None] * len(values))
        for place, value, ends in zip(places, values, within, strict=True):
            low, high = (scale * end for end in ends or (value, value))
            if ends:
                axes.plot((low, high), (place, place), color=INK, linewidth=1)
            told = f"{scale * value:.1f}" if percent else f"{value:.3f}" if ends else f"{value:.3g}"
            axes.annotate(told, (max(high, scale * value), place), (3, 0), fontsize=8,
                          textcoords="offset points", va="center")  # fmt: skip
    middle = thick * (len(series) - 1) / 2
    axes.set_yticks([at + middle for at in range(len(labels))], [_short(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(axis)
    axes.margins(x=0.12, y=0.02)
    axes.grid(axis="x", color=EDGE, linewidth=0.6)
    if len(series) > 1:
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, fontsize=9
        )
    first, values = next(iter(series.items()))
    largest = sorted(zip(values, labels, strict=True), key=lambda pair: -pair[0])[:4]
    summary = ", ".join(
        f"{label} {100 * v:.1f} %" if percent else f"{label} {v:,.3g}" for v, label in largest
    )
    return _drawn(figure, name, caption, f"Bars of {axis}; {first}: {summary}.")


def forest(
    name: str,
    caption: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[Point | None]],
    *,
    axis: str,
) -> Figure:
    """Draw points with their intervals relative to a line at 0, one row per label from the top.

    Args:
        name, caption: of the figure.
        labels: of the rows.
        series: a value with its interval for each label; None if there is none.
        axis: title of the value axis.
    """
    figure, axes = _canvas(1.1 + 0.36 * len(labels))
    apart = 0.5 / len(series)
    axes.axvline(0, color=INK, linewidth=0.8)
    for number, (title, points) in enumerate(series.items()):
        known = [(at, point) for at, point in enumerate(points) if point is not None]
        rows = [at + number * apart - apart * (len(series) - 1) / 2 for at, _ in known]
        color = COLORS[number % len(COLORS)]
        axes.scatter([value for _, (value, _) in known], rows, color=color, label=title,
                     marker=MARKERS[number % len(MARKERS)], s=30, zorder=3)  # fmt: skip
        for row, (_, (_, ends)) in zip(rows, known, strict=True):
            if ends is not None:
                axes.plot(ends, (row, row), color=color, linewidth=1.6)
    axes.set_yticks(range(len(labels)), [_short(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel(axis)
    axes.grid(axis="x", color=EDGE, linewidth=0.6)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, fontsize=9)
    first, points = next(iter(series.items()))
    summary = ", ".join(
        f"{label} {point[0]:.3f}" for label, point in zip(labels, points, strict=True) if point
    )
    return _drawn(figure, name, caption, f"{axis}; {first}: {summary}.")


def cumulative(
    name: str,
    caption: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    alt: str,
) -> Figure:
    """Draw steps: the share of each series at or below x, on a logarithmic axis.

    Args:
        name, caption: of the figure.
        series: x, positive and increasing, and y of each line.
        x, y: titles of the axes.
        alt: alternative text.
    """
    figure, axes = _canvas(3.4)
    for number, (title, (across, up)) in enumerate(series.items()):
        axes.step(
            across, up, where="post", label=title, color=COLORS[number % len(COLORS)],
            linestyle=DASHES[number % len(DASHES)], linewidth=1.8,
            marker="o" if len(across) < 3 else "",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color=EDGE, linewidth=0.6)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    return _drawn(figure, name, caption, alt)


def curves(
    name: str,
    caption: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    alt: str,
    diagonal: bool = False,
) -> Figure:
    """Draw lines of shares, 0 to 1 on both axes, formatted as percent.

    Args:
        name, caption: of the figure.
        series: x and y of each line.
        x, y: titles of the axes.
        alt: alternative text.
        diagonal: draw the line of equality.
    """
    figure, axes = _canvas(3.6)
    if diagonal:
        axes.plot((0, 100), (0, 100), color=EDGE, linewidth=1.2)
    for number, (title, (across, up)) in enumerate(series.items()):
        axes.plot(
            [100 * number for number in across], [100 * n for n in up], label=title,
            color=COLORS[number % len(COLORS)], linestyle=DASHES[number % len(DASHES)],
            linewidth=1.8, marker=MARKERS[number % len(MARKERS)] if len(across) <= 20 else "",
            markersize=4,
        )  # fmt: skip
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.set_xlabel(f"{x}, %")
    axes.set_ylabel(f"{y}, %")
    axes.grid(color=EDGE, linewidth=0.6)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    return _drawn(figure, name, caption, alt)


def panels(
    name: str,
    caption: str,
    weeks: Sequence[date],
    series: Mapping[str, Sequence[int]],
    *,
    y: str,
    alt: str,
) -> Figure:
    """Draw a small chart over weeks for each series, below each other, with the same scale.

    Args:
        name, caption: of the figure.
        weeks: their first days.
        series: a count for each week.
        y: title of the axis of counts.
        alt: alternative text.
    """
    require_matplotlib()
    dates = import_module("matplotlib.dates")
    figure = import_module("matplotlib.figure").Figure(
        figsize=(WIDTH_INCHES, 0.7 + 0.85 * len(series)), layout="constrained"
    )
    rows = figure.subplots(len(series), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    highest = 1.05 * max(max(counts) for counts in series.values())
    ends = [*weeks, weeks[-1] + timedelta(weeks=1)]
    for axes, (title, counts) in zip(rows, series.items(), strict=True):
        axes.stairs(counts, dates.date2num(ends), fill=True, color=COLORS[0])
        axes.set_title(title, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=EDGE, linewidth=0.6)
        axes.set_ylim(0, highest)
        axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
    locator = dates.AutoDateLocator(maxticks=7)
    rows[-1].xaxis.set_major_locator(locator)
    rows[-1].xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    figure.supylabel(y, fontsize=10)
    return _drawn(figure, name, caption, alt)


def heat(
    name: str,
    caption: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[int]],
    *,
    down: str,
    across: str,
) -> Figure:
    """Draw counts by row and column; a larger share of the row is darker.

    Args:
        name, caption: of the figure.
        rows, columns: the labels of both axes.
        values: a count for each cell.
        down, across: titles of rows and columns.
    """
    figure, axes = _canvas(
        1.9 + 0.24 * len(rows), width=max(WIDTH_INCHES, 2.2 + 0.27 * len(columns))
    )
    shares = [[value / max(1, sum(row)) for value in row] for row in values]
    # Cells are opaque, so that their numbers are legible on any page.
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.1, aspect="auto")
    for at, row in enumerate(values):
        for to, value in enumerate(row):
            if value:
                color = "white" if shares[at][to] > 0.6 else "#000001"
                axes.text(to, at, f"{value:,}", ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(len(columns)), [_short(word) for word in columns], rotation=60,
                    ha="right", rotation_mode="anchor", fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(rows)), [_short(word) for word in rows], fontsize=8)
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    axes.tick_params(length=0)
    pairs = ((v, r, c) for r, row in zip(rows, values, strict=True)
             for c, v in zip(columns, row, strict=True) if r != c and v)  # fmt: skip
    largest = sorted(pairs, key=lambda pair: -pair[0])[:3]
    summary = "; ".join(f"{r} and {c}: {v:,}" for v, r, c in largest)
    return _drawn(figure, name, caption, f"Counts by {down} and {across}. {summary}.")


def ranges(
    name: str,
    caption: str,
    labels: Sequence[str],
    values: Sequence[tuple[float, float]],
    *,
    axis: str,
    middle: float | Sequence[float],
) -> Figure:
    """Draw a bar from low to high for each label, from the top.

    Args:
        name, caption: of the figure.
        labels: of the bars.
        values: low and high of each; shares of 0 to 1, formatted as percent.
        axis: title of the value axis.
        middle: a mark in each bar, or one value marked by a line through all bars (a tornado chart).
    """
    figure, axes = _canvas(0.9 + 0.32 * len(labels))
    lows, highs = ([100 * pair[end] for pair in values] for end in (0, 1))
    widths = [high - low for low, high in zip(lows, highs, strict=True)]
    places = range(len(labels))
    axes.barh(places, widths, 0.6, left=lows, color=COLORS[0], linewidth=0)
    for at, low, high in zip(places, lows, highs, strict=True):
        axes.annotate(f"{low:.1f}", (low, at), (-3, 0), textcoords="offset points", ha="right", va="center", fontsize=8)  # fmt: skip
        axes.annotate(f"{high:.1f}", (high, at), (3, 0), textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    if isinstance(middle, float):
        axes.axvline(100 * middle, color=INK, linewidth=1)
    else:
        axes.scatter([100 * n for n in middle], places, color="white", edgecolors=INK, s=26, zorder=3)  # fmt: skip
    axes.set_yticks(places, [_short(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(f"{axis}, %")
    room = 0.14 * (max(highs) - min(lows))
    axes.set_xlim(min(lows) - room, max(highs) + room)
    axes.grid(axis="x", color=EDGE, linewidth=0.6)
    summary = "; ".join(f"{label} {low:.1f} to {high:.1f} %" for label, low, high in
                     list(zip(labels, lows, highs, strict=True))[:4])  # fmt: skip
    return _drawn(figure, name, caption, f"Ranges of {axis}: {summary}.")


def inline_svg(figure: Figure) -> str:
    """Return the figure for a page: transparent, in the page's colors, with unique ids.

    The page's style sheet defines ``--ink`` and ``--edge``. Everything else uses attributes, since a content security
    policy may forbid inline styles.
    """
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{figure.name}-", svg)
    ground = re.compile(r'<g id="[^"]*-patch_[12]">\s*<path[^>]*style="fill: #ffffff[^>]*/>\s*</g>')
    svg = ground.sub("", svg)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bstyle="([^"]*)"', _as_attributes, svg)
    svg = svg.replace("<svg ", '<svg stroke-linejoin="round" stroke-linecap="butt" ', 1)
    return svg.replace(INK, "var(--ink)").replace(EDGE, "var(--edge)")


def _as_attributes(style: re.Match[str]) -> str:
    """Convert style properties to presentation attributes (SVG 2, Section 6.6)."""
    pairs = (word.split(":", 1) for word in style[1].split(";") if word.strip())
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in pairs)


def _canvas(height: float, width: float = WIDTH_INCHES) -> tuple[Any, Any]:
    """Return an empty figure of this size in inches; it shares no state with the caller's matplotlib."""
    require_matplotlib()
    figure = import_module("matplotlib.figure").Figure(
        figsize=(width, height), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def _drawn(figure: Any, name: str, caption: str, alt: str) -> Figure:
    matplotlib = import_module("matplotlib")
    style = {"svg.fonttype": "path", "svg.hashsalt": name, "hatch.linewidth": 0.8}
    svg, png = BytesIO(), BytesIO()
    # The warning about glyphs that the font lacks is of no use here.
    with matplotlib.rc_context(style), warnings.catch_warnings(action="ignore"):
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return Figure(name, caption, alt, svg.getvalue().decode(), png.getvalue())


def _short(label: str) -> str:
    text = "".join(t if t.isprintable() else " " for t in label).replace("$", r"\$")
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
