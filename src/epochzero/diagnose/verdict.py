"""Derives a diagnosis from the timeline of a job."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from epochzero import taxonomy
from epochzero.diagnose.catalog import SIGNALS
from epochzero.diagnose.classifier import classify
from epochzero.diagnose.confidence import confidence
from epochzero.diagnose.ending import death, silence, survival
from epochzero.diagnose.facts import Facts, signal_name
from epochzero.diagnose.fingerprint import fingerprint, is_weak, weak_fingerprint
from epochzero.diagnose.judgment import (
    BURST_LINES,
    EXCEPTION,
    JudgedEvent,
    asserts_in_kernel,
    reports_death,
)
from epochzero.diagnose.model import (
    MOST_FRAMES,
    Basis,
    CodeFrame,
    Consequence,
    Cost,
    Diagnosis,
    ExceptionInfo,
    Root,
)
from epochzero.diagnose.phase import TRAINING, phase_of, reads_sample
from epochzero.diagnose.reading import read
from epochzero.diagnose.timeline import Timeline
from epochzero.logs.events import LogEvent
from epochzero.logs.progress import last_form
from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame

MOST_EVIDENCE = 8
MOST_CONSEQUENCES = 50


@dataclass(frozen=True, slots=True)
class _Default:
    """Default texts of a category (``defaults.toml``)."""

    root_cause: str = "unknown"
    retry: str = "unknown"
    retry_reason: str = ""
    meaning: str = ""
    extract: tuple[re.Pattern[str], ...] = ()
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Exit:
    """Meaning of an exit status or a scheduler's state (``exits.toml``,
    ``states.toml``).
    """

    meaning: str
    category: str = ""
    also: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    retry: str = "unknown"
    title: str = ""


@dataclass(frozen=True, slots=True)
class JobContext:
    """Data for a verdict in addition to the events.

    Attributes:
        source: the names of the job's logs.
        facts: known facts in addition to the logs.
        work: what each log shows that the job did.
        empty: the logs contain no readable text.
        incomplete: a part of the logs could not be read.
        tails: the last bytes of each log.
        ranks: the only rank that the text of a log names, by the name of the log.
    """

    source: tuple[str, ...]
    facts: Facts
    work: Mapping[str, frozenset[str]]
    empty: bool
    incomplete: bool = False
    tails: tuple[bytes, ...] = ()
    ranks: Mapping[str, int | None] = field(default_factory=dict)


def verdict(timeline: Timeline, job: JobContext) -> Diagnosis:
    """The diagnosis of one job."""
    root = timeline.root
    if job.facts.ended_well and not _tells_of_deaths(timeline):
        return _no_failure(timeline, job, "The job exited with code 0.")
    wrapped = root is not None and root.role in ("wrapper", "cascade") and root.match
    reports_death = wrapped and wrapped.status
    says_why = root is not None and (root.role == "cause" or root.category)
    if root is not None and says_why and not reports_death and not root.event.cut_off:
        found = _as_hang(_failed(root, timeline, job), root, job)
        return replace(found, confidence=confidence(found))
    status = _status(root, job.facts)
    if root is None and status and status <= SIGNALS and job.facts.state not in _states():
        root = _last_error(timeline)
        if root is not None:
            found = _failed(root, timeline, job)
            if found.basis == "nothing":
                found = replace(
                    found,
                    root_cause="unknown",
                    retry="unknown",
                    retry_reason=_RETRY_REASONS["unknown"],
                    fixes=("Evidence needed: a more detailed log of what led to this message.",),
                )
            return replace(found, confidence=confidence(found))
    if status or root is not None or job.facts.state in _states():
        return _missing(root, timeline, job, status)
    if job.empty or job.incomplete:
        return _unknown(job)
    return _no_failure(timeline, job, "Nothing in the log indicates that the job failed.")


def _last_error(timeline: Timeline) -> JudgedEvent | None:
    """The last thing that a program logged as an error before it exited with a code of its own choice, if its
    output then ended: it says why, even where nothing of it is recognized.
    """
    logged = (
        judged
        for judged in reversed(timeline.judged)
        if judged.event.level in ("ERROR", "FATAL") and judged.role == "cause"
    )
    last = next(logged, None)
    if last is None or last.event.handled or last.event.set_aside or last.event.went_on:
        return None
    return last if last.event.log_later <= _LINES_AFTER_THE_LAST_ERROR else None


def _tells_of_deaths(timeline: Timeline) -> bool:
    """Whether a process raised and its launcher reported its failure; some launchers exit with 0 all the same."""
    died = any(j.match and j.match.status for j in timeline.judged if j.role == "wrapper")
    return died and any(j.claim >= EXCEPTION for j in timeline.candidates)


def _no_failure(timeline: Timeline, job: JobContext, meaning: str) -> Diagnosis:
    return Diagnosis(
        source=job.source,
        outcome="no_failure",
        category="not_a_failure",
        dimension=_dimension("not_a_failure"),
        confidence=0.95 if job.facts.exit_status == 0 else 0.8,
        title="No failure",
        meaning=meaning,
        end=survival(timeline, job.facts),
        cost=_cost(job.facts),
    )


def _unknown(job: JobContext) -> Diagnosis:
    """Neither the logs nor facts show how the job ended."""
    return Diagnosis(
        source=job.source,
        outcome="unknown",
        category="not_a_failure",
        dimension=_dimension("not_a_failure"),
        title="How the job ended is unknown",
        meaning=_INCOMPLETE if job.incomplete else _EMPTY,
        fixes=(_GIVE_FACTS,),
        cost=_cost(job.facts),
    )


def _missing(
    root: JudgedEvent | None, timeline: Timeline, job: JobContext, status: int | None
) -> Diagnosis:
    """The job failed without a logged reason: uses the scheduler's state or the meaning of the exit
    status, and suggests further evidence.
    """
    stated = _states().get(job.facts.state or "")
    cut = root is not None and root.event.cut_off
    unsaid = _Exit(_CUT_OFF, settle=_BELOW) if cut else _Exit(_NOTHING_SAID)
    end = stated or _exits().get(str(status)) or unsaid
    category = end.category or "internal_error"
    work = _work(root, job)
    phase = "training" if work & TRAINING else "evaluation" if "serving" in work else "unknown"
    identity = _weak_identity(root, job, status, phase)
    return Diagnosis(
        source=job.source,
        outcome="failed" if stated else "evidence_missing",
        category=category,
        dimension=_dimension(category),
        root_cause=_defaults()[category].root_cause if stated else "unknown",
        phase=phase,
        retry=end.retry,
        retry_reason=_RETRY_REASONS[end.retry],
        confidence=_exit_confidence(end, status, known=stated is not None),
        also=end.also,
        title=(stated.title or f"Scheduler state {job.facts.state}")
        if stated
        else _exit_title(status, cut),
        meaning=f"{_EMPTY} {end.meaning}" if job.empty else end.meaning,
        root=_root(root, timeline, job) if root else None,
        user_frame=_user_frame(_stack(root, timeline)) if root else None,
        stack=_places(_stack(root, timeline)) if root else (),
        evidence=_evidence(root, timeline) if root else (),
        cascade=_consequences(root, timeline),
        fixes=_where_to_look(
            end, _defaults()[end.also[0] if end.also else category], known=stated is not None
        ),
        basis="exit" if status or stated else "nothing",
        fingerprint=identity,
        fingerprint_weak=is_weak(identity),
        end=death(root, timeline, job.facts, state_known=stated is not None),
        cost=_cost(job.facts),
    )


def _exit_confidence(end: _Exit, status: int | None, *, known: bool) -> float:
    """How often the category is right: a state or a signal names how a process ended, an exit code little."""
    if known or (status or 0) > SIGNALS:
        return 0.7
    return 0.4 if end.category else 0.2


def _weak_identity(
    root: JudgedEvent | None, job: JobContext, status: int | None, phase: str
) -> str:
    """The few properties that distinguish processes that exited without a message."""
    reporter = root.match.signature.name if root and root.match else ""
    places = " ".join(frame.function for frame in root.event.frames[-1:]) if root else ""
    progress = next(filter(None, map(last_form, reversed(job.tails))), "")
    end = f"{job.facts.state or ''} {'' if status is None else status} {places}"
    return weak_fingerprint(end, phase, reporter, progress)


def _where_to_look(end: _Exit, default: _Default, *, known: bool) -> tuple[str, ...]:
    """Suggested evidence, depending on whether it is known how a job ended."""
    settle = end.settle or (
        "the complete standard error of every rank",
        "the scheduler's record of the job",
    )
    if known:
        return (*default.fixes[-1:], *(f"More evidence: {what}." for what in settle))
    known_end = default.fixes[-1:] if end.category else ()
    return (*(f"Evidence needed: {what}." for what in settle), *known_end)


_RETRY_REASONS = {
    "unknown": "The log does not show whether the job would fail again.",
    "may_succeed": "The job was terminated from outside.",
}
_EMPTY = (
    "The log is empty. The job exited before it wrote any output, or the output was redirected."
)
_INCOMPLETE = "The readable part of the log contains no failure, but the rest is missing."
_GIVE_FACTS = "Pass the job's exit code (--exit-code) or its scheduler state (--state)."
_CUT_OFF = (
    "The log ends or is truncated before the last line of a traceback, which names the error."
)
_BELOW = ("the lines below this traceback, in the complete standard error of its rank",)
_LINES_AFTER_THE_LAST_ERROR = 5
"""Such as the lines of a launcher, and what a logger or a progress bar prints when it closes."""
_UNRECOGNIZED = (
    "The message matches no known kind of failure. The lines before it may explain the cause."
)
_NOTHING_SAID = "The job failed, and its logs do not show why."


def _failed(root: JudgedEvent, timeline: Timeline, job: JobContext) -> Diagnosis:
    event = root.event
    signature = root.match.signature if root.match else None
    category, basis = _category(root)
    default = _defaults()[category]
    stack = _stack(root, timeline)
    own = _user_frame(stack)
    stated = signature.phase if signature else ""
    retry, reason = _retry(root, default)
    return Diagnosis(
        source=job.source,
        outcome="failed",
        category=category,
        dimension=_dimension(category),
        root_cause=(signature.root_cause if signature else "") or _cause(event, stack, category),
        phase=phase_of(
            stack,
            category,
            kind=event.type,
            work=_work(root, job),
            stated=stated,
            announced=event.announced,
        ),
        retry=retry,
        retry_reason=reason,
        also=_also(root, timeline),
        title=signature.title if signature else taxonomy.categories()[category].title,
        meaning=_UNRECOGNIZED
        if basis == "nothing"
        else signature.meaning
        if signature
        else default.meaning,
        root=_root(root, timeline, job),
        exception=ExceptionInfo(event.type, event.message) if event.type else None,
        user_frame=own,
        stack=_places(stack),
        evidence=_evidence(root, timeline),
        cascade=_consequences(root, timeline),
        fixes=_fixes(root, default, own),
        signature=signature.name if signature else "",
        basis=basis,
        fingerprint=fingerprint(event.type or category, event.message, event.frames),
        end=death(root, timeline, job.facts, state_known=job.facts.state in _states()),
        cost=_cost(job.facts),
    )


def _as_hang(found: Diagnosis, root: JudgedEvent, job: JobContext) -> Diagnosis:
    """The diagnosis of a job that had stopped long before its time limit: more time would not help."""
    silent = silence(root, job.tails) if found.category == "timeout" else 0.0
    if not silent:
        return found
    hours = f"{silent / 3600:.1f} hours"
    return replace(
        found,
        title="The job hung until its time limit",
        meaning=f"The job wrote no output in the last {hours} before its limit, although it had written output often until then.",
        root_cause="programming_error",
        retry="unknown",
        retry_reason="More time would not have helped. A lost message or a slow service may not recur. A branch that only some "
        "ranks take hangs again at the same place.",
        fixes=(
            "Find out where each process waits. Run the job with `epochzero run`, which terminates a job that hangs "
            "and records the stacks of all its processes.",
            *found.fixes,
        ),
    )


def _work(root: JudgedEvent | None, job: JobContext) -> frozenset[str]:
    """What the job did before its failure, according to the same log or those of other ranks."""
    before = root.event.work if root else frozenset()
    log = root.event.log if root else ""
    return before.union(*(work for name, work in job.work.items() if name != log))


_VERSIONS = re.compile(
    r"^(?:partially initialized )?module '[\w.]+' has no attribute"
    r"|^Can't get attribute '\w+' on <module '[\w.]+' from '[^']*(?:site|dist)-packages"
)
"""A name that another version of an installed package has."""
_OWN_SLIPS = frozenset({"illegal_index", "not_implemented", "tensor_mismatch"})
"""Categories that are slips of the user where a line of the user's own code fails."""
_REFUSAL = re.compile(r"raise\b|assert\b|six\.|.*raise_from|.*\.format\(|.*% \(?\w")
"""The source line of a check that a library makes on purpose, or the end of its message."""
_SLIPS = frozenset(
    {
        "attribute_not_found", "division_by_zero", "illegal_index", "key_not_found", "null_reference",
        "syntax_error", "type_mismatch", "undefined_variable",
    }
)  # fmt: skip


def _cause(event: LogEvent, stack: Sequence[Frame], category: str) -> str:
    """The category's usual root cause; a defect of the library where a slip is in a line of its own.

    A library that refuses a call says so with ``raise``. Where Python itself fails in another line of
    its code, the library did not expect what happened; but right below the user's call, what the user
    passed is the nearer explanation.
    """
    default = _defaults()[category]
    if category == "tensor_mismatch" and reads_sample(stack):
        # The code suited the samples before this one.
        return "exceptional_data"
    if category == "attribute_not_found" and _VERSIONS.search(event.message):
        return "environment"
    if event.type == "FileExistsError":
        return "environment"
    if category == "tensor_mismatch" and any(map(is_user_frame, stack)):
        return "programming_error"
    last = event.frames[-1] if event.frames else None
    if last is None:
        return default.root_cause
    if is_user_frame(last):
        return "programming_error" if category in _OWN_SLIPS else default.root_cause
    if category not in _SLIPS:
        return default.root_cause
    bare = last.code.startswith("assert") and not event.message
    refused = _REFUSAL.match(last.code) and not bare
    near = _depth_below_user(event.frames) <= NEAR_CALLS
    return default.root_cause if refused or near else "library_defect"


NEAR_CALLS = 3
"""Number of library calls below the user's own code within which the user's argument explains a slip."""


def _depth_below_user(frames: Sequence[Frame]) -> int:
    """Number of library frames below the innermost frame of the user; without those that pass calls on."""
    depth = 0
    for frame in reversed(frames):
        if is_user_frame(frame):
            return depth
        depth += not frame.function.startswith(("_call_impl", "_wrapped_call_impl", "wrapper"))
    return len(frames) + NEAR_CALLS


def _stack(root: JudgedEvent, timeline: Timeline) -> tuple[Frame, ...]:
    """The frames of the root; if they contain none of the user's own code, those of the nearest
    exceptions: of the same traceback, else of the same process.
    """
    event = root.event
    if any(is_user_frame(frame) for frame in event.frames):
        return event.frames
    late = asserts_in_kernel(root)
    near = [
        other.event
        for other in timeline.judged
        if other.event.log == event.log
        and other.event.rank == event.rank
        and (late or abs(other.event.line - event.line) <= BURST_LINES)
        and any(is_user_frame(frame) for frame in other.event.frames)
    ]
    near.sort(key=lambda e: (e.trace != event.trace, abs(e.line - event.line)))
    return near[0].frames if near else event.frames


def _user_frame(stack: tuple[Frame, ...]) -> CodeFrame | None:
    """The innermost frame of the user's own code."""
    own = next((frame for frame in reversed(stack) if is_user_frame(frame)), None)
    return _place(own) if own else None


def _places(stack: tuple[Frame, ...]) -> tuple[CodeFrame, ...]:
    return tuple(map(_place, stack[-MOST_FRAMES:]))


def _place(frame: Frame) -> CodeFrame:
    return CodeFrame(frame.file, frame.line, frame.function, frame.code)


def _dimension(category: str) -> str:
    return taxonomy.categories()[category].dimension


def _root(root: JudgedEvent, timeline: Timeline, job: JobContext) -> Root:
    event = root.event
    named = root.match.rank if root.match else None
    rank = event.rank if named is None else named
    # What a launcher started wrote the logs of several ranks.
    if rank is None and not any(reports_death(judged) for judged in timeline.judged):
        rank = job.ranks.get(event.log)
    line, shown = event.line, event.shown
    if counted := _COUNTED.match(event.message):
        line, shown = line + 1, counted[1]
    return Root(event.log, line, shown, rank, event.host, event.time)


_COUNTED = re.compile(r"\d+ root error\(s\) found\.\n( *\(0\) .+)")
"""How TensorFlow announces its errors: the first of them is the statement."""


def _status(root: JudgedEvent | None, facts: Facts) -> int | None:
    """The exit status: as reported by a launcher, or a fact."""
    if root and root.match and root.match.status:
        return root.match.status
    return facts.exit_status or (1 if facts.state in ("FAILED", "Failed", "Error") else None)


def _exit_title(status: int | None, cut_off: bool) -> str:
    if status is None:
        return "Truncated traceback" if cut_off else "Failed without a logged reason"
    if status > 128 and str(status) in _exits():
        return f"Killed by {signal_name(status - 128)} without a message"
    return f"Exit code {status} without a message"


def _retry(root: JudgedEvent, default: _Default) -> tuple[str, str]:
    signature = root.match.signature if root.match else None
    if root.role == "cascade":
        return "unknown", "The cause is in another process, whose output is not in these logs."
    if signature and signature.retry:
        return signature.retry, signature.retry_reason or default.retry_reason
    return default.retry, default.retry_reason


def _fixes(root: JudgedEvent, default: _Default, own: CodeFrame | None) -> tuple[str, ...]:
    """The signature's fixes; else the category's, completed with values from the message."""
    values = {"code": own.code} if own and own.code else {}
    if root.match and (fixes := root.match.fixes(values)):
        return fixes
    for pattern in default.extract:
        if found := pattern.search(root.event.text):
            values |= {k: v.strip() for k, v in found.groupdict().items() if v and k not in values}
    complete = [fix for fix in default.fixes if set(_PLACEHOLDER.findall(fix)) <= values.keys()]
    filled = [_PLACEHOLDER.sub(lambda name: values[name[1]], fix) for fix in complete]
    # A fix with the names and numbers of this log replaces the general one below it.
    specific = [text for text, fix in zip(filled, complete, strict=True) if text != fix]
    general = [text for text in filled if text not in specific]
    return tuple(specific[:1] + general[1:] if specific else general)


def _also(root: JudgedEvent, timeline: Timeline) -> tuple[str, ...]:
    """Other plausible categories: the signature's own, and those of competing causes."""
    named = list(root.match.signature.also) if root.match else []
    for judged in timeline.candidates:
        if judged.claim == root.claim and judged.category:
            named.append(judged.category)
    return tuple(dict.fromkeys(name for name in named if name != root.category))[:3]


_OF_CALLS = frozenset({"illegal_argument", "not_implemented"})
"""Categories of what a call rejects; while a data set reads a sample, it rejects what the data contain."""


def _category(root: JudgedEvent) -> tuple[str, Basis]:
    """Category and its basis."""
    event = root.event
    if root.match is None and root.category in _OF_CALLS and reads_sample(event.frames):
        # Of a value, whatever class of exception the author chose.
        stated = read("ValueError", event.message).category
        return "corrupt_data" if stated == "illegal_argument" else root.category, "reading"
    if root.category:
        return root.category, "signature" if root.match else "reading"
    # It has learned from exceptions, by their types.
    guess, _ = classify(event.type, event.message) if event.type else ("", 0.0)
    return (guess, "classifier") if guess else ("internal_error", "nothing")


def _evidence(root: JudgedEvent, timeline: Timeline) -> tuple[str, ...]:
    lines = [root.event.shown.strip()]
    for judged in timeline.judged:
        same_place = judged.event.log == root.event.log and judged.event.rank == root.event.rank
        if judged is not root and same_place and judged.role == "cause" and judged.category:
            lines.append(judged.event.shown.strip())
    return tuple(dict.fromkeys(lines))[:MOST_EVIDENCE]


def _consequences(root: JudgedEvent | None, timeline: Timeline) -> tuple[Consequence, ...]:
    """The consequences, one entry per rank and kind of line."""
    found: dict[tuple[int | None, str], list[JudgedEvent]] = {}
    for judged in timeline.judged:
        if judged is root or judged.role not in ("cascade", "wrapper", "teardown", "cause"):
            continue
        if judged.role == "cause" and not (judged.claim >= EXCEPTION and root):
            continue
        same_failure = root and judged.event.text == root.event.text
        if same_failure and judged.event.rank == (root.event.rank if root else None):
            continue
        name = judged.match.signature.name if judged.match else judged.event.type
        found.setdefault((judged.event.rank, name or judged.event.text[:60]), []).append(judged)
    consequences = [
        Consequence(
            rank=rank,
            title=group[0].match.signature.title if group[0].match else "",
            text=group[0].event.shown.strip()[:300],
            file=group[0].event.log,
            line=group[0].event.line,
            role="later" if group[0].role == "cause" else group[0].role,
            count=len(group),
        )
        for (rank, _), group in found.items()
    ]
    return tuple(consequences[:MOST_CONSEQUENCES])


def _cost(facts: Facts) -> Cost | None:
    if facts.start is None or facts.end is None or not facts.gpus:
        return None
    seconds = max(0.0, facts.end - facts.start)
    return Cost(facts.gpus, seconds, round(facts.gpus * seconds / 3600, 3))


_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _read(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def _defaults() -> Mapping[str, _Default]:
    return {
        category: _Default(
            **{
                **raw,
                "extract": tuple(re.compile(p) for p in raw.get("extract", ())),
                "fixes": tuple(raw.get("fixes", ())),
            }
        )
        for category, raw in _read("defaults.toml").items()
    }


@cache
def _exits() -> Mapping[str, _Exit]:
    return _ends("exits.toml")


@cache
def _states() -> Mapping[str, _Exit]:
    return _ends("states.toml")


def _ends(name: str) -> Mapping[str, _Exit]:
    return {
        key: _Exit(
            **{
                **raw,
                "also": tuple(raw.get("also", ())),
                "settle": tuple(raw.get("settle", ())),
            }
        )
        for key, raw in _read(name).items()
    }
