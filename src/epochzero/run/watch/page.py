"""The page about a watched training: one HTML file, read without a network.

The verdict first, with the line that made the fault; then its symptoms; then the curves. All text of the
job is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from typing import TypeVar

import numpy as np

from epochzero.run.watch.history import Series, TrainingHistory
from epochzero.run.watch.lines.program import parsed
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult
from epochzero.run.watch.plot import bars, chart, number, spark

MOST_ROWS = 60
"""Of a table by layer; of more an even choice."""
_Item = TypeVar("_Item")
_AROUND = 3
"""Lines of source before and after the one that is shown."""
_LAYER_COLUMNS = (
    ("Spread of its output", "std"),
    ("Constant units", "constant"),
    ("At the lower limit", "low"),
    ("At the upper limit", "high"),
)
_PARAMETER_COLUMNS = (("Gradient", "gradient"), ("Weight", "weight"))
_VALUE_COLUMNS = ("p5", "p50", "p95")


def page(history: TrainingHistory, watched: WatchResult, title: str = "") -> str:
    """The page as text.

    Args:
        history: with the curves.
        watched: the verdict on it.
        title: what the training is called.
    """
    head = escape(title or "Watched training")
    parts = (
        _verdict(history, watched),
        _others("Consequences", history, watched.symptoms),
        _others(
            "Also found",
            history,
            [other for other in watched.others if other is not watched.suspect],
        ),
        _curves(history),
        _parameters(history),
        _layers(history),
        _values(history),
        _classes(history),
    )
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    body = "\n".join(part for iterator in parts for part in iterator)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{head}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{head}</h1>\n<p class=soft>{_size(history)}</p></header>\n"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _size(history: TrainingHistory) -> str:
    looked = len(history.iterations)
    text = f"{history.count:,} iterations, {looked:,} of them sampled in detail"
    evaluations = f"; {len(history.evaluations):,} evaluations" if history.evaluations else ""
    return text + evaluations + ("" if history.ended else "; still running")


def _verdict(history: TrainingHistory, watched: WatchResult) -> Iterator[str]:
    first = watched.root or watched.suspect
    if first is None:
        nothing = "No faults found" if not watched.others else "No faults proved"
        text = nothing if history.count else "No training was watched"
        yield f'<section class="finding good"><h2>{text}</h2></section>'
        return
    yield '<section class="finding root">'
    suspected = "" if watched.root else "Suspected: "
    yield f"<h2>{suspected}{escape(first.title)}</h2>"
    yield from _told(history, first)
    yield "</section>"


def _others(
    head: str, history: TrainingHistory, findings: Iterable[TrainingFinding]
) -> Iterator[str]:
    found = list(findings)
    if found:
        yield f"<section><h2>{head}</h2>"
        for finding in found:
            yield f'<div class="finding"><h3>{escape(finding.title)}</h3>'
            yield from _told(history, finding)
            yield "</div>"
        yield "</section>"


def _told(history: TrainingHistory, finding: TrainingFinding) -> Iterator[str]:
    yield f"<p>{escape(finding.text)}</p>"
    if finding.fix:
        yield f'<p class="fix">Fix: {escape(finding.fix)}</p>'
    place = f"{finding.place.path}:{finding.place.line}" if finding.place else ""
    evidence = "; ".join(
        f"{name} {number(value) if isinstance(value, int | float) else value}"
        for name, value in finding.evidence.items()
    )
    rows = {
        "Layer": finding.layer,
        "Line": place,
        "Option": finding.option,
        "Since": f"iteration {finding.since:,}",
        "State": finding.state,
        "Confidence": f"{finding.confidence:.0%}",
        "Evidence": evidence,
        "Word": finding.word,
    }
    yield "<dl>"
    for name, text in rows.items():
        if text:
            yield f"<dt>{name}</dt><dd>{escape(text)}</dd>"
    yield "</dl>"
    if finding.place is not None:
        yield from _source(finding.place)
    if finding.series:
        lines = {finding.series: history.series(finding.series)}
        yield from _figure(history, finding.series, lines, mark=finding.since)


def _source(place: SourceLine) -> Iterator[str]:
    """The line among its neighbors; alone where the file has changed since, or is not here."""
    program = parsed(place.path)
    lines = program.lines if program else ()
    at = place.line - 1
    if at < len(lines) and (not place.text or lines[at].strip()[:200] == place.text):
        numbers = range(max(0, at - _AROUND), min(len(lines), at + _AROUND + 1))
        rows = [f"{n + 1:>5}  {escape(lines[n])}" for n in numbers]
        yield _code(rows, numbers.index(at))
    elif place.text:
        yield _code([f"{place.line:>5}  {escape(place.text)}"], 0)


def _code(rows: list[str], marked: int) -> str:
    rows[marked] = f"<b>{rows[marked]}</b>"
    return f'<pre tabindex="0" aria-label="source">{chr(10).join(rows)}</pre>'


def _curves(history: TrainingHistory) -> Iterator[str]:
    losses = {"training": history.loss}
    if len(history.loss_by_line) > 1:
        losses = {
            f"line {line.rpartition(':')[2]}": series
            for line, series in history.loss_by_line.items()
        }
    yield '<section><h2>Curves</h2><div class="figures">'
    yield from _figure(history, "Loss", {**losses, "evaluation": history.series("evaluation/loss")})
    accuracy = {
        "batches": history.series("accuracy"),
        "evaluation": history.series("evaluation/accuracy"),
    }
    yield from _figure(history, "Accuracy", accuracy)
    yield from _figure(history, "Learning rate", {"learning rate": history.series("rate")})
    yield "</div></section>"


def _figure(
    history: TrainingHistory, caption: str, lines: dict[str, Series], mark: float | None = None
) -> Iterator[str]:
    if drawn := chart(lines, caption, until=history.count, mark=mark):
        yield f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"


def _parameters(history: TrainingHistory) -> Iterator[str]:
    rows = []
    for parameter in _chosen(history.parameters):
        cells = [
            _cell(
                history.parameter_series(parameter.name, what, "rms"), f"{parameter.name}, {head}"
            )
            for head, what in _PARAMETER_COLUMNS
        ]
        ratio = _cell(
            _update_ratio(history, parameter.name), f"{parameter.name}, ratio of update to weight"
        )
        state = "" if parameter.trainable and parameter.held else " (not trained)"
        rows.append((f"<code>{escape(parameter.name)}</code>{state}", *cells, ratio))
    heads = ("Parameter", *(head for head, _ in _PARAMETER_COLUMNS), "Ratio of update to weight")
    yield from _table("Parameters, root mean square", heads, rows)


def _update_ratio(history: TrainingHistory, name: str) -> Series:
    update = history.parameter_series(name, "update", "rms")
    weight = history.parameter_series(name, "weight", "rms")
    steps, of_update, of_weight = np.intersect1d(
        update[:, 0], weight[:, 0], assume_unique=True, return_indices=True
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = update[of_update, 1] / weight[of_weight, 1]
    return np.column_stack([steps, ratio])


def _layers(history: TrainingHistory) -> Iterator[str]:
    rows = []
    for path, kind in _chosen(history.order):
        layer = history.layer(path)
        place = f"<br>line {layer.place.line}" if layer is not None and layer.place else ""
        cells = [
            _cell(history.layer_series(path, what), f"{path}, {head}")
            for head, what in _LAYER_COLUMNS
        ]
        name = f"<code>{escape(path)}</code> <span class=soft>{escape(kind)}{place}</span>"
        rows.append((name, *cells))
    yield from _table("Layers", ("Layer", *(head for head, _ in _LAYER_COLUMNS)), rows)


def _values(history: TrainingHistory) -> Iterator[str]:
    names = dict.fromkeys(name for iteration in history.iterations for name in iteration.values)
    figures: list[str] = []
    for name in _chosen(tuple(names)):
        lines = {number: history.value_series(name, number) for number in _VALUE_COLUMNS}
        figures += _figure(history, f"{name}: percentiles of values", lines)
    if figures:
        yield '<section><h2>Selected values</h2><div class="figures">'
        yield from figures
        yield "</div></section>"


def _classes(history: TrainingHistory) -> Iterator[str]:
    counts: dict[str, float] = {}
    for iteration in history.iterations:
        for name, count in iteration.target.get("classes", {}).items():
            counts[name] = counts.get(name, 0.0) + count
    if len(counts) > 1:
        ordered = dict(sorted(counts.items(), key=lambda item: int(item[0])))
        yield "<section><h2>Classes</h2><figure><figcaption>Labels in the sampled batches"
        yield f"</figcaption>{bars(ordered, 'Labels in the sampled batches')}</figure></section>"


def _cell(series: Series, label: str) -> str:
    finite = series[np.isfinite(series[:, 1]), 1]
    if not series.size:
        return ""
    last = number(float(series[-1, 1]))
    return f"{spark(series, label)} {last}" if finite.size else last


def _table(head: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    yield f'<section><h2>{head}</h2><div class="scroll" tabindex="0" role="region" '
    yield f'aria-label="{head}"><table><thead><tr>'
    yield "".join(f'<th scope="col">{column}</th>' for column in columns)
    yield "</tr></thead><tbody>"
    for first, *rest in rows:
        cells = "".join(f"<td class=n>{cell}</td>" for cell in rest)
        yield f'<tr><th scope="row">{first}</th>{cells}</tr>'
    yield "</tbody></table></div></section>"


def _chosen(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    return items[:: -(-len(items) // MOST_ROWS)] if items else ()
