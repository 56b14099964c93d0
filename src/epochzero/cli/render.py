"""How diagnoses are shown: text for people, JSON, Markdown, GitHub annotations."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from epochzero import taxonomy
from epochzero.diagnose.model import Consequence, Diagnosis, Root
from epochzero.logs.source import Log

__all__ = ["progress", "write"]

LABEL_WIDTH = 12
SHOW_PROGRESS_BYTES = 200 << 20


def write(diagnoses: Iterable[Diagnosis], form: str, *, top: int, many: bool) -> None:
    """Prints diagnoses in one of the forms of ``epochzero diagnose --format``."""
    if form == "json":
        results = [found.to_dict() for found in diagnoses]
        value = results if many else results[0]
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
        return
    for number, found in enumerate(diagnoses):
        if form == "jsonl":
            click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        elif form == "markdown":
            click.echo(_plain(_markdown(found, top)))
        elif form == "github":
            click.echo(_plain(_github(found)))
        else:
            if number:
                click.echo()
            _text(found, top)


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


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _plain(text: str) -> str:
    """Text of a log without what a terminal would obey."""
    return _CONTROL.sub("", text)


def _text(found: Diagnosis, top: int) -> None:
    click.echo(_headline(found))
    if found.meaning:
        click.echo(_wrapped("", found.meaning))
    if found.root:
        place = ":".join(str(part) for part in (found.root.file, found.root.line) if part)
        where = ", ".join([place, *_who(found.root)])
        click.echo(_field("Root", where))
        click.echo(_wrapped("", _shorten(found.root.text.strip(), 600), fg="red"))
    if found.user_frame:
        frame = found.user_frame
        call = f" in {frame.function}" if frame.function else ""
        click.echo(_field("Your code", f"{frame.file}:{frame.line}{call}"))
        if frame.code:
            click.echo(_wrapped("", frame.code, fg="cyan"))
    if found.outcome != "no_failure":
        click.echo(
            _field(
                "Phase",
                f"{_title('phases', found.phase)}; "
                f"cause: {_title('root_causes', found.root_cause).lower()}",
            )
        )
        for number, fix in enumerate(found.fixes[:top], 1):
            click.echo(_wrapped("Fix" if number == 1 else "", f"{number}. {fix}"))
        advice = _title("retries", found.retry)
        click.echo(_wrapped("Retry", f"{advice}. {found.retry_reason}".rstrip(" .") + "."))
    for number, line in enumerate(_cascade(found.cascade, top)):
        click.echo(_wrapped("Then" if number == 0 else "", line))
    if found.cost:
        cost = found.cost
        click.echo(
            _field(
                "Cost",
                f"{cost.gpus} GPUs x {_duration(cost.seconds)} = {cost.gpu_hours:g} GPU hours",
            )
        )
    if found.fingerprint:
        by = found.signature or found.basis
        click.echo(_field("Identity", f"{found.fingerprint}  ({by})"))


def _headline(found: Diagnosis) -> str:
    if found.outcome == "no_failure":
        return click.style("NO FAILURE", fg="green", bold=True)
    category = taxonomy.categories()[found.category]
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
        yield f"{whose}{group[0].title or _shorten(group[0].text, 140)}"
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


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _field(label: str, text: str) -> str:
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{_plain(text)}"


def _wrapped(label: str, text: str, fg: str | None = None) -> str:
    width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))
    lines = textwrap.wrap(_plain(text), width - LABEL_WIDTH, break_on_hyphens=False) or [""]
    indent = " " * LABEL_WIDTH
    body = f"\n{indent}".join(click.style(line, fg=fg) if fg else line for line in lines)
    return f"{click.style(f'{label:<{LABEL_WIDTH}}', bold=True)}{body}"


def _markdown(found: Diagnosis, top: int) -> str:
    if found.outcome == "no_failure":
        return f"**No failure.** {found.meaning}"
    lines = [f"### {_named(found)}", "", found.meaning, ""]
    if found.root:
        who = ", ".join([_code(f"{found.root.file}:{found.root.line}"), *_who(found.root)])
        lines += [f"**Root** {who}", "", _fenced(found.root.text.strip()), ""]
    if found.user_frame:
        frame = found.user_frame
        place = f"{_code(f'{frame.file}:{frame.line}')} in {_code(frame.function)}"
        code = f": {_code(frame.code)}" if frame.code else ""
        lines += [f"**Your code** {place}{code}", ""]
    lines += [f"{number}. {_escaped(fix)}" for number, fix in enumerate(found.fixes[:top], 1)]
    lines += ["", f"**Retry** {_title('retries', found.retry)}. {found.retry_reason}"]
    if found.cascade:
        lines += ["", "**Then**", ""]
        lines += [f"- {_escaped(line)}" for line in _cascade(found.cascade, top)]
    lines += [
        "",
        f"<sub>{found.fingerprint} · {found.signature or found.basis} · "
        f"confidence {found.confidence:.0%}</sub>",
    ]
    return "\n".join(lines)


def _code(text: str) -> str:
    """A code span that the text itself cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}"


def _fenced(text: str) -> str:
    """A code block that the text itself cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    """Log text for Markdown: no HTML, no links, no mentions."""
    for character in "\\`*_[]<>|#@":
        text = text.replace(
            character,
            "\\" + character
            if character not in "<>@"
            else {"<": "&lt;", ">": "&gt;", "@": "&#64;"}[character],
        )
    return text


def _github(found: Diagnosis) -> str:
    """A workflow command; its properties need more escaping than its message."""
    if found.outcome == "no_failure":
        return f"::notice title=EpochZero::{_command(found.meaning)}"
    place = ""
    if found.user_frame and found.user_frame.line:
        file = _command(found.user_frame.file).replace(":", "%3A").replace(",", "%2C")
        place = f"file={file},line={found.user_frame.line},"
    title = _command(_named(found)).replace(":", "%3A").replace(",", "%2C")
    parts = [found.root.text.strip() if found.root else "", found.meaning, *found.fixes[:1]]
    message = "\n".join(part for part in parts if part)
    return f"::error {place}title={title}::{_command(message)}"


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
