"""The memory of a job over its events, as a picture: stacked by kind, with the GPU's limit (SVG)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from epochzero.check.dryrun.memory.estimate import Memory
from epochzero.check.dryrun.memory.timeline import MemoryTimeline
from epochzero.check.dryrun.memory.units import MIB, size_text
from epochzero.check.target.model import GPU

COLORS = {
    "parameter": "#4477aa",
    "buffer": "#66ccee",
    "gradient": "#228833",
    "optimizer": "#ccbb44",
    "workspace": "#999999",
    "communication": "#332288",
    "input": "#aa3377",
    "activation": "#ee6677",
    "temporary": "#ee9955",
}
"""By kind, the lowest first: Tol's "bright" scheme, which the color-blind can tell apart."""
WIDTH, HEIGHT = 960, 440
LEFT, RIGHT, TOP, BOTTOM = 72, 180, 72, 44
LIMIT_SHOWN = 2.0
"""The GPU's limit is drawn where it is at most this many times the peak."""
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 15px; font-weight: 600 }
.soft { fill: #666 }
.grid { stroke: #8884; fill: none }
.mark { stroke: #8888; stroke-dasharray: 2 3 }
.limit { stroke: #cc3311; stroke-width: 1.5; stroke-dasharray: 6 3 }
.limit-text { fill: #cc3311 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd }
  .soft { fill: #aaa }
  .limit { stroke: #ff7755 }
  .limit-text { fill: #ff7755 }
}
"""


def picture(memory: Memory, title: str = "") -> str:
    """The timeline of a job's memory, as the text of an SVG file."""
    plot = _Plot(memory.timeline, memory.fit.gpu)
    head = title or "GPU memory"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(head)}">',
            f"<style>{_STYLE}</style>",
            f'<text class="title" x="{LEFT}" y="22">{escape(head)}</text>',
            *plot.grid(),
            *plot.areas(),
            *plot.moments(),
            *plot.limit(),
            *plot.peak(),
            *plot.legend(),
            "</svg>\n",
        )
    )


class _Plot:
    """Columns drawn to scale."""

    def __init__(self, timeline: MemoryTimeline, gpu: GPU) -> None:
        drawn = self.columns = timeline.columns
        self.marks = timeline.moments
        self.gpu = gpu
        self.highest = max(drawn, key=lambda column: sum(column.values()))
        self.most = sum(self.highest.values())
        peak = max(self.most, 1)
        self.limited = gpu.memory_bytes <= LIMIT_SHOWN * peak
        self.top = max(peak, gpu.memory_bytes if self.limited else 0) * 1.08
        self.kinds = [kind for kind in COLORS if any(column.get(kind) for column in drawn)]

    def x(self, column: int) -> float:
        return LEFT + column / max(len(self.columns) - 1, 1) * (WIDTH - LEFT - RIGHT)

    def y(self, size: float) -> float:
        return HEIGHT - BOTTOM - size / self.top * (HEIGHT - TOP - BOTTOM)

    def grid(self) -> Iterator[str]:
        step = _step(self.top)
        for number in range(int(self.top // step) + 1):
            y = self.y(number * step)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{size_text(number * step)}</text>'
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield (
            f'<text class="soft" x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">'
            "allocations and frees, in order</text>"
        )

    def areas(self) -> Iterator[str]:
        base = [0] * len(self.columns)
        for kind in self.kinds:
            top = [b + c.get(kind, 0) for b, c in zip(base, self.columns, strict=True)]
            edge = [(self.x(number), self.y(size)) for number, size in enumerate(top)]
            edge += [(self.x(number), self.y(size)) for number, size in enumerate(base)][::-1]
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
            yield f'<polygon fill="{COLORS[kind]}" points="{points}"><title>{kind}</title></polygon>'
            base = top

    def moments(self) -> Iterator[str]:
        free = 0.0
        for moment in self.marks:
            x = self.x(moment.column)
            yield f'<path class="mark" d="M{x:.1f} {TOP - 6}V{HEIGHT - BOTTOM}"/>'
            if x >= free:
                name = escape(moment.name)
                yield f'<text class="soft" x="{x + 3:.1f}" y="{TOP - 10}">{name}</text>'
                free = x + 7 * len(moment.name) + 10

    def limit(self) -> Iterator[str]:
        if self.limited:
            y = self.y(self.gpu.memory_bytes)
            yield f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            text = f"{escape(self.gpu.model)}: {size_text(self.gpu.memory_bytes)}"
            yield f'<text class="limit-text" x="{LEFT + 6}" y="{y - 6:.1f}">{text}</text>'

    def peak(self) -> Iterator[str]:
        x, y = self.x(self.columns.index(self.highest)), self.y(self.most)
        side = ("start", 8) if x < WIDTH / 2 else ("end", -8)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" stroke="#fff"/>'
        yield (
            f'<text x="{x + side[1]:.1f}" y="{y - 6:.1f}" text-anchor="{side[0]}">'
            f"peak {size_text(self.most)}</text>"
        )

    def legend(self) -> Iterator[str]:
        x, y = WIDTH - RIGHT + 16, TOP + 40
        yield f'<text class="soft" x="{x}" y="{y - 14}">at the peak</text>'
        for number, kind in enumerate(reversed(self.kinds)):
            row = y + 20 * number
            yield f'<rect x="{x}" y="{row - 10}" width="12" height="12" fill="{COLORS[kind]}"/>'
            size = size_text(self.highest.get(kind, 0))
            yield f'<text x="{x + 18}" y="{row}">{kind} {size}</text>'


def _step(top: float) -> int:
    """A round number of bytes between lines: about five of them."""
    step = MIB
    while top / step > 6:
        step *= 2
    return step
