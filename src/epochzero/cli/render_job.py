"""How stored jobs are shown: a listing, and one screen about one job."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from epochzero import taxonomy
from epochzero.cli import layout, render_watch
from epochzero.cli.finding_labels import category_title
from epochzero.diagnose.model import FAILURES
from epochzero.store.job_details import AttemptDetails, JobDetails, RankDetails, Usage
from epochzero.store.queries import JobSummary

_HUNG = "hung"
_COLORS = {
    "running": "cyan", _HUNG: "red", "succeeded": "green", "failed": "red", "lost": "yellow",
}  # fmt: skip
_BARS = "▁▂▃▄▅▆▇█"
_MOST_RANKS = 8
_MOST_EVENTS = 8

UsageOf = Callable[[RankDetails], Sequence[Usage]]


def listing(jobs: Sequence[JobSummary], *, now: float) -> Iterator[str]:
    """A table of jobs, as wide as the terminal.

    Args:
        jobs: in the order of the rows.
        now: seconds since the epoch, for jobs that still run.
    """
    head = ("JOB", "NAME", "STATE", "STARTED", "TOOK", "GPU H", "TRIES", "WHY")
    rows = [
        (
            job.id,
            layout.shorten(layout.plain(job.name), 28) + " (simulated)" * job.simulated,
            _state(job),
            _moment(job.started),
            layout.duration((job.ended or now) - job.started),
            f"{job.gpu_hours:.3g}" if job.gpus else "",
            str(job.attempts) if job.attempts > 1 else "",
            layout.plain(job.hung.partition(": ")[2] or job.hung) or _why(job.category),
        )
        for job in jobs
    ]
    room = shutil.get_terminal_size((120, 24)).columns
    titles, *lines = (line[:room] for line in layout.aligned([head, *rows]))
    yield click.style(titles, bold=True)
    for job, line in zip(jobs, lines, strict=True):
        state = _state(job)
        yield line.replace(f"  {state}", "  " + click.style(state, fg=_COLORS.get(state)), 1)


def describe(job: JobDetails, *, now: float, usage_of: UsageOf) -> Iterator[str]:
    """One screen about a job: its identity, its attempts, its resource usage.

    Args:
        job: everything that is known.
        now: seconds since the epoch.
        usage_of: what a rank used over its time.
    """
    summary = job.summary
    state = _state(summary)
    color = _COLORS.get(state)
    yield f"{click.style(state.upper(), fg=color, bold=True)}  {layout.plain(summary.name)}"
    yield layout.field("Job", summary.id)
    yield layout.wrapped("Command", " ".join(job.command))
    where = [job.folder, f"on {summary.host}", f"by {summary.user}"]
    yield layout.wrapped(
        "Where", ", ".join((*where, *([summary.launcher] * bool(summary.launcher))))
    )
    if summary.target:
        here = ", simulated on this machine" * summary.simulated
        yield layout.field("Target", f"{summary.target}{here}")
    took = layout.duration((summary.ended or now) - summary.started)
    cost = f"; {summary.gpus} GPUs, {summary.gpu_hours:.3g} GPU hours" if summary.gpus else ""
    yield layout.field("When", f"{_moment(summary.started)}, {took}{cost}")
    if summary.hung:
        yield layout.wrapped("Hang", summary.hung, fg="red")
    for attempt in job.attempts:
        yield ""
        yield from _attempt(attempt, usage_of, alone=len(job.attempts) == 1, now=now)


def _attempt(
    attempt: AttemptDetails, usage_of: UsageOf, *, alone: bool, now: float
) -> Iterator[str]:
    took = layout.duration((attempt.ended or now) - attempt.started)
    code = f", exit code {attempt.exit_code}" if attempt.exit_code else ""
    if not alone:
        state = click.style(attempt.state, fg=_COLORS.get(attempt.state))
        yield f"{click.style(f'Attempt {attempt.number}', bold=True)}  {state}, {took}{code}"
    elif code:
        yield layout.field("Ended", code.removeprefix(", "))
    shown = _worth_showing(attempt.ranks)
    for rank in shown:
        yield from _rank(rank, usage_of(rank), named=len(attempt.ranks) > 1)
    if len(shown) < len(attempt.ranks):
        yield layout.field("", f"and {len(attempt.ranks) - len(shown)} more ranks")


def _worth_showing(ranks: Sequence[RankDetails]) -> Sequence[RankDetails]:
    """Of many ranks those that did not end well, the first to end before the others."""
    if len(ranks) == 1:
        return ranks
    bad = [rank for rank in ranks if rank.state not in ("succeeded", "running")]
    return sorted(bad, key=lambda rank: rank.ended or 0)[:_MOST_RANKS] or ranks[:1]


def _rank(rank: RankDetails, used: Sequence[Usage], *, named: bool) -> Iterator[str]:
    if named:
        which = "" if rank.rank is None else f"{rank.rank} "
        yield layout.field("Rank", f"{which}on {rank.host}: {rank.state}")
    if rank.progress:
        yield layout.field("Progress", _progress(rank.progress))
    yield from _diagnosis(rank.diagnosis)
    yield from _places(rank.ranking)
    yield from layout.listed("Check", map(_finding, rank.findings[:3]))
    for decision in rank.decisions:
        action = str(decision["action"]).replace("_", " ")
        yield layout.wrapped("Retry", f"{action} ({decision['policy']}): {decision['reason']}")
    yield from _training(rank.events)
    yield from _usage(used)
    events = rank.events[-_MOST_EVENTS:]
    yield from layout.listed("Events", (f"{_clock(event)}  {event['text']}" for event in events))
    authors = ((note["text"], note["author"]) for note in rank.notes)
    yield from layout.listed("Notes", (f"{text} ({by})" if by else text for text, by in authors))
    logs = [
        f"{log.name} {layout.size(log.size)}"
        + (f", {layout.size(log.dropped)} of it dropped" * bool(log.dropped))
        for log in rank.logs
    ]
    if logs:
        yield layout.wrapped("Logs", "; ".join(logs))


def _diagnosis(diagnosis: Mapping[str, Any] | None) -> Iterator[str]:
    """The lines that ``epochzero diagnose`` prints, from the JSON form."""
    if not diagnosis or diagnosis.get("outcome") not in FAILURES:
        return
    category = category_title(str(diagnosis.get("category", "")))
    title = diagnosis.get("title") or category
    yield layout.wrapped(
        "Failure", category if title == category else f"{category}: {title}", fg="red"
    )
    if root := diagnosis.get("root"):
        rank = "" if root.get("rank") is None else f", rank {root['rank']}"
        yield layout.field("Root", f"{root.get('file', '')}:{root.get('line', '')}{rank}")
        yield layout.wrapped("", layout.shorten(str(root.get("text", "")).strip(), 300), fg="red")
    if frame := diagnosis.get("user_frame"):
        yield layout.field("Your code", f"{frame.get('file')}:{frame.get('line')}")
    fixes = enumerate(diagnosis.get("fixes", ())[:2], 1)
    yield from layout.listed("Fix", (f"{number}. {fix}" for number, fix in fixes))


def _finding(finding: Mapping[str, Any]) -> str:
    place = finding.get("place") or {}
    at = f"{place.get('path', '')}:{place.get('line', '')}".rstrip(":")
    return f"{at}  {finding.get('rule', '')}: {finding.get('message', '')}"


def _training(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The last verdict on the training, if it was watched."""
    from epochzero.run.watch.live import EVENT  # imports what a listing does not need

    verdicts = [event for event in events if event.get("what") == EVENT]
    if not verdicts:
        return
    from epochzero.run.watch.model import of_dict

    try:
        watched = of_dict(json.loads(verdicts[-1]["details"]["watched"]))
    except (KeyError, TypeError, ValueError):
        yield layout.wrapped("Training", str(verdicts[-1]["text"]))
        return
    yield from render_watch.verdict(watched)


def _places(ranking: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = []
    for item in ranking[:3]:
        unit = f" {item['unit']}" if item.get("unit") else ""
        names.append(f"{item.get('path', '')}{unit}")
    if names:
        yield layout.wrapped("Look at", ", ".join(names))


def _progress(progress: Mapping[str, Any]) -> str:
    parts = []
    for text, many in (("epoch", "epochs"), ("step", "steps")):
        if progress.get(text) is not None:
            of = f" of {progress[many]:g}" if progress.get(many) else ""
            parts.append(f"{text} {progress[text]:g}{of}")
    if progress.get("loss") is not None:
        parts.append(f"loss {progress['loss']:.4g}")
    if progress.get("checkpoint"):
        parts.append(f"checkpoint {progress['checkpoint']}")
    return ", ".join(parts)


def _usage(used: Sequence[Usage]) -> Iterator[str]:
    """Small charts over the time of the attempt; the scale ends at the highest value."""
    if len(used) < 2:
        return
    cpu = [point.cpu_percent for point in used]
    memory = [float(point.memory_bytes) for point in used]
    yield layout.field("CPU", f"{_chart(cpu)}  most {max(cpu) / 100:.1f} cores")
    yield layout.field("Memory", f"{_chart(memory)}  most {layout.size(max(memory))}")
    gpu = [point.gpu_percent for point in used if point.gpu_percent is not None]
    held = [float(point.gpu_memory_bytes) for point in used if point.gpu_memory_bytes is not None]
    if gpu and held:
        yield layout.field("GPU", f"{_chart(gpu)}  mean {sum(gpu) / len(gpu):.0f} %")
        yield layout.field("GPU memory", f"{_chart(held)}  most {layout.size(max(held))}")


def _chart(values: Sequence[float]) -> str:
    top = max(values) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] for value in values)


def _state(job: JobSummary) -> str:
    return _HUNG if job.hung else job.state


def _why(category: str) -> str:
    """A category, or the fault for which ``run --watch`` stopped the job."""
    of_training = category in taxonomy.faults() or category in taxonomy.symptoms()
    return f"watch: {category}" if of_training else category_title(category)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _clock(event: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(event["time"]).astimezone().strftime("%H:%M:%S")
