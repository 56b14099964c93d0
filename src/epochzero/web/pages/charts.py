"""Charts as inline SVG, with the numbers in a table or label.

Colors are classes of the style sheet; pages contain no inline styles. The axis labels are on the
right, where a phone shows the newest end of a wide chart first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup, escape

from epochzero.web.pages.escaped_text import plain

WIDTH, HEIGHT = 880, 200
LEFT, RIGHT, TOP, BOTTOM = 4, 44, 8, 22
SPAN_WIDTH, SPAN_HEIGHT = 1000, 16
REST = "rest"
"""The color of all other series; own colors are numbered from 0."""
Part = tuple[str, Sequence[float]]
"""A color, and a height for each bar."""
_MOST_LABELS = 8
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
_SPARK_HEIGHT = 24


def stacks(names: Sequence[str], series: Mapping[str, Part], label: str) -> Markup:
    """Stacked vertical bars; the first series is at the bottom.

    Args:
        names: of the bars, from left to right.
        series: name -> its color, and a height for each bar.
        label: text alternative.
    """
    heights = [values for _, values in series.values()]
    top = _round_above(max((sum(pair) for pair in zip(*heights, strict=True)), default=0) or 1)
    parts = [*_grid(top), *_names(names), _bars(names, series, top)]
    return _svg((WIDTH, HEIGHT), label, parts)


def span(
    begin: float,
    end: float,
    last: float,
    *,
    kind: str,
    label: str,
    marks: Iterable[tuple[float, str]],
) -> Markup:
    """A time interval as a horizontal bar of full width.

    Args:
        begin, end, last: seconds from its left edge; the right edge is the last one.
        kind: CSS classes of its color.
        label: text alternative.
        marks: times of events, with their descriptions.
    """
    scale = SPAN_WIDTH / (last or 1.0)
    width = max(2.0, (end - begin) * scale)
    bar = Markup('<rect class="span {}" x="{}" y="2" width="{}" height="{}"/>').format(
        kind, f"{begin * scale:.1f}", f"{width:.1f}", SPAN_HEIGHT - 4
    )
    drawn = [
        Markup(
            '<rect class="mark" x="{}" y="0" width="3" height="{}"><title>{}</title></rect>'
        ).format(f"{min(at * scale, SPAN_WIDTH - 3):.1f}", SPAN_HEIGHT, plain(text))
        for at, text in marks
    ]
    return _svg((SPAN_WIDTH, SPAN_HEIGHT), label, [bar, *drawn], stretched=True)


def sparkline(values: Sequence[int]) -> Markup:
    """The number of jobs on each of some days, as small bars."""
    most = max(values, default=0)
    label = f"{sum(values):,} jobs in {len(values)} days, at most {most:,} a day"
    scale = _SPARK_HEIGHT / (most or 1)
    # One path is a tenth of the text of a rectangle per value.
    bars = "".join(
        f"M{4 * at} {_SPARK_HEIGHT}v-{max(2.0, value * scale):.1f}h3V{_SPARK_HEIGHT}"
        for at, value in enumerate(values)
        if value
    )
    base = f'<path class="grid" d="M0 {_SPARK_HEIGHT}H{4 * len(values)}"/>'
    parts = (Markup(base), Markup(f'<path d="{bars}"/>'))
    drawn = _svg((4 * len(values), _SPARK_HEIGHT), label, parts)
    return Markup(f'<span class="spark">{drawn}</span>')


def _bars(names: Sequence[str], series: Mapping[str, Part], top: float) -> Markup:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    scale = (HEIGHT - TOP - BOTTOM) / top
    base = [float(HEIGHT - BOTTOM)] * len(names)
    shown = [escape(plain(name)) for name in names]
    bars = []
    for title, (color, values) in series.items():
        of_series = escape(plain(title))
        for at, value in enumerate(values):
            if value:
                base[at] -= value * scale
                bars.append(
                    f'<rect class="f{color}" x="{LEFT + (at + 0.08) * step:.1f}" y="{base[at]:.1f}" '
                    f'width="{step * 0.84:.1f}" height="{value * scale:.1f}">'
                    f"<title>{shown[at]}: {of_series} {value:,.6g}</title></rect>"
                )
    return Markup("".join(bars))


def _grid(top: float) -> Iterator[Markup]:
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        yield Markup(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        yield _text(WIDTH - RIGHT + 6, y + 4, f"{top * share:,.4g}")


def _names(names: Sequence[str]) -> Iterator[Markup]:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    for at in range(0, len(names), -(-len(names) // _MOST_LABELS) or 1):
        if at:
            yield _text(LEFT + (at + 0.5) * step, HEIGHT - 6, names[at], "middle")
        else:
            yield _text(LEFT, HEIGHT - 6, names[at])


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')


def _round_above(value: float) -> float:
    """The next round number at or above a value, at most a quarter larger."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    return next(power * number for number in _ROUND if power * number >= value)


def _svg(
    size: tuple[int, int], label: str, parts: Sequence[Markup], *, stretched: bool = False
) -> Markup:
    width, height = size
    ratio = ' class="stretched" preserveAspectRatio="none"' if stretched else ""
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}"{ratio} role="img" '
        f'aria-label="{escape(plain(label))}">{"".join(parts)}</svg>'
    )
