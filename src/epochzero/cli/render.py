"""How diagnoses are shown: text for people, JSON, Markdown, SARIF, GitHub annotations."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from epochzero import taxonomy
from epochzero.cli import layout, sarif
from epochzero.diagnose.model import FAILURES, SCHEMA, Consequence, Diagnosis, Root
from epochzero.logs.source import Log

SHOW_PROGRESS_BYTES = 200 << 20


def write(diagnoses: Iterable[Diagnosis], form: str, *, top: int, many: bool) -> None:
    """Prints diagnoses in one of the forms of ``epochzero diagnose --format``."""
    if form == "json":
        results = [found.to_dict() for found in diagnoses]
        value = results if many else results[0]
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
        return
    if form == "sarif":
        _write_sarif([found for found in diagnoses if found.outcome in FAILURES])
        return
    for number, found in enumerate(diagnoses):
        if form == "jsonl":
            click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        elif form == "markdown":
            click.echo(layout.plain(_markdown(found, top)))
        elif form == "github":
            click.echo(layout.plain(_github(found)))
        else:
            if number:
                click.echo()
            for line in lines(found, top):
                click.echo(line)


@contextmanager
def progress(logs: Sequence[Log]) -> Iterator[None]:
    """Tells on a terminal that long work is under way."""
    size = sum(log.path.stat().st_size for log in logs if log.path and log.path.is_file())
    told = size > SHOW_PROGRESS_BYTES and sys.stderr.isatty()
    if told:
        click.echo(f"reading {size / 1e6:,.0f} MB in {len(logs)} logs ...", err=True, nl=False)
    try:
        yield
    finally:
        if told:
            click.echo("\r\x1b[K", err=True, nl=False)


def lines(found: Diagnosis, top: int, *, advice: bool = True) -> Iterator[str]:
    """A diagnosis as people read it.

    Args:
        found: what is shown.
        top: at most so many fixes, and consequences.
        advice: whether to say if a retry helps.
    """
    yield _headline(found)
    if found.meaning:
        yield layout.wrapped("", found.meaning)
    if found.root:
        place = ":".join(str(part) for part in (found.root.file, found.root.line) if part)
        where = ", ".join([place, *_who(found.root)])
        yield layout.field("Root", where)
        yield layout.wrapped("", layout.shorten(found.root.text.strip(), 600), fg="red")
    if found.user_frame:
        frame = found.user_frame
        call = f" in {frame.function}" if frame.function else ""
        yield layout.field("Your code", f"{frame.file}:{frame.line}{call}")
        if frame.code:
            yield layout.wrapped("", frame.code, fg="cyan")
    if found.outcome in FAILURES:
        yield layout.field(
            "Phase",
            f"{_title('phases', found.phase)}; "
            f"cause: {_title('root_causes', found.root_cause).lower()}",
        )
    for number, fix in enumerate(found.fixes[:top], 1):
        yield layout.wrapped("Fix" if number == 1 else "", f"{number}. {fix}")
    if advice and found.outcome in FAILURES:
        helps = _title("retries", found.retry)
        yield layout.wrapped("Retry", f"{helps}. {found.retry_reason}".rstrip(" .") + ".")
    for number, line in enumerate(_cascade(found.cascade, top)):
        yield layout.wrapped("Then" if number == 0 else "", line)
    if found.cost:
        cost = found.cost
        took = layout.duration(cost.seconds)
        yield layout.field("Cost", f"{cost.gpus} GPUs x {took} = {cost.gpu_hours:.3g} GPU hours")
    for number, note in enumerate(found.notes):
        yield layout.wrapped("Note" if number == 0 else "", note)
    if found.fingerprint:
        by = "weak: unrelated failures can share it" if found.fingerprint_weak else found.signature
        by = by or found.basis
        yield layout.field("Identity", f"{found.fingerprint}  ({by})")


def _headline(found: Diagnosis) -> str:
    if found.outcome == "no_failure":
        return click.style("NO FAILURE", fg="green", bold=True)
    category = taxonomy.categories()[found.category]
    if found.outcome == "unknown":
        return click.style(f"UNKNOWN  {found.title}", fg="yellow", bold=True)
    mark = "FAILED" if found.outcome == "failed" else "FAILED, EVIDENCE MISSING"
    also = f", also {', '.join(found.also)}" if found.also else ""
    head = click.style(f"{mark}  {category.title}", fg="red", bold=True)
    told = f": {found.title}" if found.title and found.title != category.title else ""
    return f"{head}{told}  (confidence {found.confidence:.0%}{also})"


def _named(found: Diagnosis) -> str:
    """Category and title, once where they are the same."""
    category = taxonomy.categories()[found.category].title
    return category if found.title in ("", category) else f"{category}: {found.title}"


def _title(vocabulary: str, name: str) -> str:
    terms = getattr(taxonomy, vocabulary)()
    title: str = terms[name].title
    return title


def _who(root: Root) -> list[str]:
    parts = [f"rank {root.rank}"] if root.rank is not None else []
    if root.host:
        parts.append(f"host {root.host}")
    if root.time is not None:
        dated = root.time > 86_400
        stamp = datetime.fromtimestamp(root.time, UTC)
        parts.append(stamp.strftime("%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S"))
    return parts


def _cascade(cascade: Sequence[Consequence], top: int) -> Iterator[str]:
    """Consequences, those that say the same of several ranks in one line."""
    groups: dict[str, list[Consequence]] = {}
    for one in cascade:
        groups.setdefault(one.title or one.text[:60], []).append(one)
    shown = sorted(groups.values(), key=len, reverse=True)
    for group in shown[:top]:
        ranks = sorted({one.rank for one in group if one.rank is not None})
        whose = f"rank{'s' if len(ranks) > 1 else ''} {_ranges(ranks)}: " if ranks else ""
        yield f"{whose}{group[0].title or layout.shorten(group[0].text, 140)}"
    if len(shown) > top:
        yield f"and {len(shown) - top} more consequences (--top {len(shown)} shows them)"


def _ranges(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as "1-3, 7"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def _markdown(found: Diagnosis, top: int) -> str:
    if found.outcome not in FAILURES:
        head = "No failure" if found.outcome == "no_failure" else found.title
        return "\n\n".join([f"**{head}.** {found.meaning}", *_notes(found)])
    lines = [f"### {_named(found)}", "", found.meaning, ""]
    if found.root:
        who = ", ".join([layout.code(f"{found.root.file}:{found.root.line}"), *_who(found.root)])
        lines += [f"**Root** {who}", "", layout.fenced(found.root.text.strip()), ""]
    if found.user_frame:
        frame = found.user_frame
        place = f"{layout.code(f'{frame.file}:{frame.line}')} in {layout.code(frame.function)}"
        code = f": {layout.code(frame.code)}" if frame.code else ""
        lines += [f"**Your code** {place}{code}", ""]
    lines += [f"{number}. {layout.escaped(fix)}" for number, fix in enumerate(found.fixes[:top], 1)]
    lines += ["", f"**Retry** {_title('retries', found.retry)}. {found.retry_reason}"]
    if found.cascade:
        lines += ["", "**Then**", ""]
        lines += [f"- {layout.escaped(line)}" for line in _cascade(found.cascade, top)]
    lines += [part for note in _notes(found) for part in ("", note)]
    lines += [
        "",
        f"<sub>{found.fingerprint} · {found.signature or found.basis} · "
        f"confidence {found.confidence:.0%}</sub>",
    ]
    return "\n".join(lines)


def _notes(found: Diagnosis) -> list[str]:
    return [f"**Note** {layout.escaped(note)}" for note in found.notes]


def _github(found: Diagnosis) -> str:
    """A workflow command; its properties need more escaping than its message."""
    if found.outcome not in FAILURES:
        return f"::notice title=EpochZero::{_command(' '.join([found.meaning, *found.notes]))}"
    place = ""
    if found.user_frame and found.user_frame.line:
        file = _command(found.user_frame.file).replace(":", "%3A").replace(",", "%2C")
        place = f"file={file},line={found.user_frame.line},"
    title = _command(_named(found)).replace(":", "%3A").replace(",", "%2C")
    text = found.root.text.strip() if found.root else ""
    parts = [text, found.meaning, *found.fixes[:1], *found.notes]
    message = "\n".join(part for part in parts if part)
    return f"::error {place}title={title}::{_command(message)}"


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# -- SARIF -------------------------------------------------------------------------------------


def _write_sarif(failures: Sequence[Diagnosis]) -> None:
    """Each failure at the innermost line of the user's own code, or else in the log."""
    categories = sorted({found.category for found in failures})
    sarif.write(
        [_descriptor(name) for name in categories],
        [_result(found, categories.index(found.category)) for found in failures],
        root=Path.cwd(),
        properties={"schema": SCHEMA},
    )


def _descriptor(category: str) -> dict[str, Any]:
    term = taxonomy.categories()[category]
    return {
        "id": category,
        "shortDescription": {"text": sarif.message(term.title)},
        "fullDescription": {"text": sarif.message(term.definition)},
        "help": {"text": sarif.message(f"{term.definition} Source: {term.source}")},
    }


def _result(found: Diagnosis, index: int) -> dict[str, Any]:
    text = found.root.text.strip() if found.root else ""
    told = " ".join(part for part in (text, found.meaning, *found.fixes[:1]) if part)
    result: dict[str, Any] = {
        "ruleId": found.category,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": sarif.message(layout.one_line(told) or _named(found))},
        "partialFingerprints": {}
        if found.fingerprint_weak
        else {"epochzero/failure": found.fingerprint},
        "properties": {"phase": found.phase, "retry": found.retry, "confidence": found.confidence},
    }
    log = (
        sarif.location(found.root.file, found.root.line or 0, told="The log") if found.root else {}
    )
    frame = found.user_frame
    code = sarif.location(frame.file, frame.line or 0) if frame else {}
    if places := [place for place in (code, log) if place]:
        result["locations"] = places[:1]
    called = (
        sarif.location(one.file, one.line or 0, told=f"In {one.function}")
        for one in reversed(found.stack)
    )
    if related := [place for place in (*places[1:], *called) if place]:
        result["relatedLocations"] = [{"id": n, **at} for n, at in enumerate(related)]
    return result
