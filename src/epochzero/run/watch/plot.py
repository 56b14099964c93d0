"""Curves as inline SVG: a chart with axes, and a small one for a row of a table.

Colors are those of the page: a line has the class ``line`` and the number of its color. What is not finite
breaks a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]
"""Rows of iteration and value."""
WIDTH, HEIGHT = 480, 190
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 12, 28
SPARK_WIDTH, SPARK_HEIGHT = 120, 26
MOST_POINTS = 400
_DECADES_FOR_LOG = 1000.0
"""A series whose values differ by more is drawn on a logarithmic scale."""


def chart(
    lines: Mapping[str, Series],
    label: str,
    *,
    until: float = 0.0,
    mark: float | None = None,
    from_zero: bool = False,
) -> str:
    """Lines over the iterations, with a legend where there are several; empty without two points.

    Args:
        lines: name -> series.
        label: what it shows, for those who do not see it.
        until: the iteration at which the axis ends, at least.
        mark: an iteration at which a vertical line stands.
        from_zero: whether the upright axis begins at 0; no value lies below.
    """
    drawn = {name: array for name, array in lines.items() if _finite(array).size}
    values = np.concatenate([_finite(array) for array in drawn.values()]) if drawn else np.empty(0)
    steps = np.concatenate([array[:, 0] for array in drawn.values()]) if drawn else np.empty(0)
    if steps.size < 2:
        return ""
    reach = np.append(steps, max(until, steps.max()))
    if from_zero:
        values = np.append(values, (0.0, 0.0 if values.any() else 1.0))
    frame = _Frame(reach, values, (WIDTH, HEIGHT), (LEFT, RIGHT, TOP, BOTTOM))
    text = "; ".join(f"{name}: {_told(array)}" for name, array in drawn.items())
    parts = [*frame.grid()]
    if mark is not None and frame.first <= mark <= frame.last:
        x = frame.x(mark)
        parts.append(f'<path class="mark" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    for color, array in enumerate(drawn.values()):
        parts.append(f'<path class="line c{color % 6}" d="{frame.path(array)}"/>')
    svg = _svg(WIDTH, HEIGHT, f"{label}. {text}", parts)
    return svg + (_legend(list(drawn)) if len(drawn) > 1 else "")


def spark(series: Series, label: str) -> str:
    """One line without axes; a dot for a single point, and nothing for none."""
    values = _finite(series)
    if not values.size:
        return ""
    frame = _Frame(series[:, 0], values, (SPARK_WIDTH, SPARK_HEIGHT), (2, 4, 3, 3))
    parts = [f'<path class="line c0" d="{frame.path(series)}"/>']
    last = series[np.isfinite(series[:, 1])][-1]
    parts.append(
        f'<circle class="dot" cx="{frame.x(last[0]):.1f}" cy="{frame.y(last[1]):.1f}" r="2"/>'
    )
    return _svg(SPARK_WIDTH, SPARK_HEIGHT, f"{label}: {_told(series)}", parts)


def bars(counts: Mapping[str, float], label: str) -> str:
    """Upright bars with their names under them, as far as there is room."""
    if not counts:
        return ""
    top = max(counts.values()) or 1.0
    step = (WIDTH - LEFT - RIGHT) / len(counts)
    base = HEIGHT - BOTTOM
    parts = [f'<path class="grid" d="M{LEFT} {base}H{WIDTH - RIGHT}"/>']
    every = -(-len(counts) // 20)
    for place, (name, count) in enumerate(counts.items()):
        x, height = LEFT + place * step, count / top * (base - TOP)
        parts.append(
            f'<rect class="bar" x="{x + step * 0.1:.1f}" y="{base - height:.1f}" '
            f'width="{step * 0.8:.1f}" height="{height:.1f}"><title>{escape(name)}: '
            f"{number(count)}</title></rect>"
        )
        if place % every == 0:
            parts.append(
                f'<text x="{x + step / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle">'
                f"{escape(name[:8])}</text>"
            )
    parts.append(f'<text x="{LEFT - 6}" y="{TOP + 8}" text-anchor="end">{number(top)}</text>')
    text = ", ".join(f"{name}: {number(count)}" for name, count in counts.items())
    return _svg(WIDTH, HEIGHT, f"{label}. {text}", parts)


def number(value: float) -> str:
    """Three digits: 0.0123, 4.5e-07, 12,300."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:.2e}"


class _Frame:
    """The place of values in a rectangle."""

    def __init__(
        self,
        steps: Series,
        values: Series,
        size: tuple[int, int],
        margins: tuple[int, int, int, int],
    ) -> None:
        self.first, self.last = float(steps.min()), float(steps.max())
        self.size, self.margins = size, margins
        low, high = float(values.min()), float(values.max())
        self.log = low > 0 and high / low > _DECADES_FOR_LOG
        self.low, self.high = self._scaled(low), self._scaled(high)
        if self.high - self.low <= 1e-9 * max(abs(self.low), abs(self.high)):
            room = abs(self.high) * 0.1 or 1.0
            self.low, self.high = self.low - room, self.high + room

    def x(self, step: float) -> float:
        left, right, _, _ = self.margins
        span = max(self.last - self.first, 1e-9)
        return left + (step - self.first) / span * (self.size[0] - left - right)

    def y(self, value: float) -> float:
        _, _, top, bottom = self.margins
        at = (self._scaled(value) - self.low) / (self.high - self.low)
        return self.size[1] - bottom - at * (self.size[1] - top - bottom)

    def path(self, series: Series) -> str:
        """The commands of a path."""
        pen, words = "M", []
        for step, value in _thinned(series):
            if not math.isfinite(value) or (self.log and value <= 0):
                pen = "M"
                continue
            words.append(f"{pen}{self.x(step):.1f} {self.y(value):.1f}")
            pen = "L"
        return "".join(words)

    def grid(self) -> Iterator[str]:
        """Lines and numbers of both axes."""
        left, right, _, bottom = self.margins
        for tick in _ticks(self.low, self.high, whole=self.log):
            y = self.y(10.0**tick if self.log else tick)
            yield f'<path class="grid" d="M{left} {y:.1f}H{self.size[0] - right}"/>'
            text = number(10.0**tick if self.log else tick)
            yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        for tick in _ticks(self.first, self.last, whole=True):
            x, y = self.x(tick), self.size[1] - bottom + 18
            yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{number(tick)}</text>'

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def _finite(series: Series) -> Series:
    values: Series = series[:, 1]
    return values[np.isfinite(values)]


def _thinned(series: Series) -> Sequence[tuple[float, float]]:
    """At most so many points; of each stretch the lowest and the highest."""
    if len(series) <= MOST_POINTS:
        return [(float(step), float(value)) for step, value in series]
    points: list[int] = []
    for stretch in np.array_split(np.arange(len(series)), MOST_POINTS // 2):
        values = series[stretch, 1]
        if np.isnan(values).all():
            points.append(int(stretch[0]))
            continue
        points += sorted({int(stretch[np.nanargmin(values)]), int(stretch[np.nanargmax(values)])})
    return [(float(step), float(value)) for step, value in series[points]]


def _ticks(low: float, high: float, *, whole: bool) -> Sequence[float]:
    """Round numbers between two, about five."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-12) / 4))
    step *= next((m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 5), 10)
    step = max(step, 1.0) if whole else step
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _told(series: Series) -> str:
    values = _finite(series)
    lost = len(series) - len(values)
    missing = f", {lost} not finite" if lost else ""
    return f"from {number(values[0])} to {number(values[-1])}{missing}"


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<li><i class="c{color % 6}"></i>{escape(name)}</li>' for color, name in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'


def _svg(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
