"""Diagnoses as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields

import click

from epochzero import taxonomy
from epochzero.cli import layout
from epochzero.cli.diagnosis_labels import consequences, origin
from epochzero.cli.line import line
from epochzero.diagnose.model import Diagnosis
from epochzero.logs.source import Block, Log, OnDamage, ignore_damage


@dataclass(frozen=True)
class _CountedLog(Log):
    """A log that reports how many of its bytes have been read."""

    on_read: Callable[[str, int], None] = lambda *_: None

    def blocks(self, on_damage: OnDamage = ignore_damage) -> Iterator[Block]:
        for block in Log.blocks(self, on_damage):
            yield block
            self.on_read(self.name, block.offset + len(block.data))


@contextmanager
def progress(logs: Sequence[Log]) -> Iterator[Sequence[Log]]:
    """Yield logs that show on a terminal how far they have been read."""
    size = sum(log.size for log in logs)
    done: dict[str, int] = {}
    with line() as shown:

        def show(name: str, read: int) -> None:
            done[name] = read
            shown.show("MB of logs read", sum(done.values()) >> 20, size >> 20)

        yield [
            _CountedLog(
                **{each.name: getattr(log, each.name) for each in fields(log)}, on_read=show
            )
            for log in logs
        ]


def lines(found: Diagnosis, top: int, *, advice: bool = True) -> Iterator[str]:
    """Yield the lines of a diagnosis.

    Args:
        found: the diagnosis.
        top: maximum number of fixes, and of consequences.
        advice: whether to include the retry advice.
    """
    yield _headline(found)
    if found.meaning:
        yield layout.wrapped("", found.meaning)
    if found.root:
        place = ":".join(str(part) for part in (found.root.file, found.root.line) if part)
        where = ", ".join([place, *origin(found.root)])
        yield layout.field("Root", where)
        yield layout.wrapped("", layout.shorten(found.root.text.strip(), 600), fg="red")
    if found.user_frame:
        frame = found.user_frame
        call = f" in {frame.function}" if frame.function else ""
        yield layout.field("Your code", f"{frame.file}:{frame.line}{call}")
        if frame.code:
            yield layout.wrapped("", frame.code, fg="cyan")
    if found.is_failure:
        yield layout.field(
            "Phase",
            f"{taxonomy.phases()[found.phase].title}; "
            f"cause: {taxonomy.root_causes()[found.root_cause].title.lower()}",
        )
    fixes = enumerate(found.fixes[:top], 1)
    yield from layout.listed("Fix", (f"{number}. {fix}" for number, fix in fixes))
    if advice and found.is_failure:
        helps = taxonomy.retries()[found.retry].title
        yield layout.wrapped("Retry", f"{helps}. {found.retry_reason}".rstrip(" .") + ".")
    yield from layout.listed("Then", consequences(found.cascade, top))
    if found.cost:
        cost = found.cost
        took = layout.duration(cost.seconds)
        yield layout.field(
            "Cost", f"{layout.counted(cost.gpus, 'GPU')} x {took} = {cost.gpu_hours:.3g} GPU hours"
        )
    yield from layout.listed("Note", found.notes)
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
    detail = f": {found.title}" if found.title and found.title != category.title else ""
    return f"{head}{detail}  (confidence {found.confidence:.0%}{also})"
