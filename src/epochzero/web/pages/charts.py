"""Pictures of a team's numbers as inline SVG, with the numbers in a table or a label beside them.

Colors are classes of the style sheet; there is no style in the page itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from epochzero.web.pages.marked import plain
from epochzero.wording import duration

__all__ = ["Span", "spans", "stacks"]

WIDTH, HEIGHT = 880, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 4, 8, 22
ROW = 22
_LABEL = 150
_MOST_LABELS = 8


@dataclass(frozen=True, slots=True)
class Span:
    """A row of a timeline.

    Attributes:
        label: of the row.
        state: how it ended; its color.
        begin, end: seconds from the left edge.
        marks: moments in it, with what happened.
        is_root: whether the first cause is in it.
    """

    label: str
    state: str
    begin: float
    end: float
    marks: tuple[tuple[float, str], ...] = ()
    is_root: bool = False


def stacks(names: Sequence[str], series: Mapping[str, Sequence[float]], label: str) -> Markup:
    """Upright bars, each a stack with one part a series; the first series lies at the bottom.

    Args:
        names: of the bars, from left to right.
        series: name -> a height for each bar.
        label: what is shown, for those who do not see it.
    """
    highest = max((sum(one) for one in zip(*series.values(), strict=True)), default=0) or 1
    top = _round_above(highest)
    parts = [*_grid(top), *_names(names), *_bars(names, series, top)]
    return _svg(HEIGHT, label, parts)


def spans(rows: Sequence[Span], label: str) -> Markup:
    """A timeline with a row for each span."""
    last = max((row.end for row in rows), default=0.0) or 1.0
    height = TOP + len(rows) * ROW + BOTTOM
    parts = [Markup(_row(row, TOP + at * ROW, last)) for at, row in enumerate(rows)]
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LABEL + share * (WIDTH - _LABEL - RIGHT)
        parts.append(_text(x, height - 6, duration(last * share), anchor))
    return _svg(height, label, parts)


def _row(row: Span, y: float, last: float) -> str:
    scale = (WIDTH - _LABEL - RIGHT) / last
    x, width = _LABEL + row.begin * scale, max(2.0, (row.end - row.begin) * scale)
    kind = f"span s-{row.state}" + " root" * row.is_root
    told = f"{row.label}: {row.state} after {duration(row.end - row.begin)}"
    marks = "".join(
        f'<circle class="mark" cx="{_LABEL + at * scale:.1f}" cy="{y + ROW / 2 - 2:.1f}" r="4">'
        f"<title>{escape(plain(text))}</title></circle>"
        for at, text in row.marks
    )
    return (
        f"{_text(0, y + ROW / 2 + 2, plain(row.label)[:22])}"
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{ROW - 6}" rx="2">'
        f"<title>{escape(plain(told))}</title></rect>{marks}"
    )


def _bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], top: float
) -> Iterator[Markup]:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    base = [0.0] * len(names)
    room = HEIGHT - TOP - BOTTOM
    for color, (title, values) in enumerate(series.items()):
        for at, value in enumerate(values):
            if value:
                height = value / top * room
                y = HEIGHT - BOTTOM - base[at] - height
                base[at] += height
                told = escape(plain(f"{names[at]}: {title} {value:,.6g}"))
                yield Markup(
                    f'<rect class="f{color}" x="{LEFT + at * step + step * 0.08:.1f}" y="{y:.1f}" '
                    f'width="{step * 0.84:.1f}" height="{height:.1f}"><title>{told}</title></rect>'
                )


def _grid(top: float) -> Iterator[Markup]:
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        yield Markup(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        yield _text(LEFT - 6, y + 4, f"{top * share:,.4g}", "end")


def _names(names: Sequence[str]) -> Iterator[Markup]:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    for at in range(0, len(names), -(-len(names) // _MOST_LABELS) or 1):
        yield _text(LEFT + at * step + step / 2, HEIGHT - 6, names[at], "middle")


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
        f"{x:.1f}", f"{y:.1f}", anchor, text
    )


def _round_above(value: float) -> float:
    """The next of 1, 2, 4, 6, 10, 20, ... from a value on."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    return next(power * one for one in (1, 2, 4, 6, 10) if power * one >= value)


def _svg(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, height, WIDTH, height, plain(label), Markup("").join(parts))
