"""Judges each event: its signature, its role and the strength of its claim to be a cause."""

from __future__ import annotations

import re
from dataclasses import dataclass

from epochzero.diagnose.catalog import SIGNALS, Catalog, Match
from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.diagnose.message import category_of, read_message
from epochzero.diagnose.reading import read, stated_reason
from epochzero.logs.events import QUIET, LogEvent
from epochzero.logs.progress import LOOKED_AT, LOSS_NAN
from epochzero.logs.traceback import is_header

BURST_LINES = 60
"""Failures of one process within this number of lines belong to one burst."""


@dataclass(frozen=True, slots=True)
class JudgedEvent:
    """An event with its judgment.

    Attributes:
        event: the event.
        match: the best signature; None if none matches.
        role: a signature's role; "earlier_run" if another run follows in the same log, "recovered" if its
            process survived, "set_aside" if it would count only with other evidence of a failure, and none
            exists.
        category: from the signature or the general rules; empty if undetermined.
        claim: strength of the event's claim to be a cause; 0 for none.
        order: position in reading order.
        ended: whether the event of an earlier run shows that a process exited.
    """

    event: LogEvent
    match: Match | None
    role: str
    category: str
    claim: int
    order: int
    ended: bool = False


EXCEPTION, FATAL_LINE, ERROR_LINE, BARE_EXCEPTION, PLAIN_LINE, WEAK, FAINT = 9, 8, 7, 6, 3, 2, 1
"""Strength of an event's claim by kind of line; a FAINT claim counts
only if the job is known to have failed.
"""

NAMELESS = 4
"""Reduction of the claim of an exception that neither a signature nor the general rules recognize."""

COLUMNS = 3
"""Number of columns that make a line without a level a row of a table."""

_NO_STATEMENT = re.compile(r"^(?:usage: |[\"'{(<-]|\[(?!\d+\.\d+\] )[\"'\d{\s])")
"""Lines that state nothing, whatever they contain: help texts, configurations."""

_NO_PROSE = re.compile(r"^[\w.-]+\s*=|^\$|^(?:\S+ )?(?:pip|conda|apt|apt-get) install ")
"""Lines that state nothing unless a signature matches: code and commands."""

_STATES = re.compile(
    r"^(?:[^\n:\]>]{0,60}(?:: |\] ?|> ?|:)){0,3}(?:error|Error|ERROR|fatal|FATAL)?:? ?"
    r"(?:\w+\.){0,5}$|^\W*$"
)
"""Text before a signature's match in a line that states it rather than mentions it."""

_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")

_SHOWN = re.compile(r"(?:(?<=[\s(\[=,:])|^)b?(['\"`])(?:.*?\1(?!\w)|.*)")
"""A text that a line shows, also one whose end is cut off. What it says is no statement of the program."""

_ADVICE = re.compile(
    r"(?i)\byou should\b|\bplease (?:make sure|consider|note|ensure)\b|\brecommended\b"
    r"|\bif (?:you|this)\b|\bthis warning\b"
)

_CONDITIONAL = re.compile(
    r"(?i)\b(?:will|would|may|might|could|can) (?:\w+ )?(?:cause|crash|fail|hang|lead|result)\b"
)
"""Words of advice, and of what has not happened: such a line reports no failure unless it is marked as one."""

_OBSERVER = re.compile(r"(?:slurmstepd|srun|wandb|\(raylet\))\b[^:\n]{0,40}: ")
"""Start of a line of a program next to the job, which need not matter to it."""

_STOPPED = re.compile(r"(?i)\bexit ?code\W{1,3}(?:-15|143)\b")
"""The end of a process that its parent asked to exit: it follows from something else, or the work was done."""

_ELSEWHERE = re.compile(
    r"(?i)\b(?:see|check|inspect|look(?: up| at)?|refer to)\b(?![^\n]*\bfor (?:\w+ )?(?:detail|info|traceback))[^\n]{0,60}"
    r"\b(?:above|below|earlier|previous|logs?|output|root cause|trace ?back|stack ?trace)\b"
    r"|\b(?:above|earlier|original|previous)\b[^\n]{0,20}\b(?:error|exception|failure)s?\b"
)
"""Words with which a message refers to another one that states the reason. What it offers for details, it states itself."""

_DEATH = re.compile(
    r"(?i)\b(?:actor|child|container|core|engine|executor|proc|process(?:es)?|rank|replica|server|shard|subprocess|worker)s?\b"
    r"[^\n]{0,60}\b(?:crashed|died|exited|is (?:already )?dead|(?:been|was|is) killed|terminated (?:abnormally|unexpectedly))\b"
    r"|^(?:\w+: )?(?:actor|child|engine|executor|process|rank|replica|server|shard|subprocess|worker)s? failed\.?$"
    r"|\bnon-?zero (?:exit|return)"
)
"""Words with which a message reports the end of another process."""


def points_elsewhere(message: str) -> bool:
    """Whether a message says that the reason is stated elsewhere: it is a consequence, whatever printed it."""
    first = message.partition("\n")[0][:LOOKED_AT]
    return _ELSEWHERE.search(first) is not None or _DEATH.search(first) is not None


_SPOKEN_OF = re.compile(
    r"^(?: \([^)\n]*\))?:? (?:is|are|was|were|means?|occurs?|happens?|refers?|indicates?|can|could|may"
    r"|might|should|would)\b"
)
"""Text after the name of an error in a sentence about it."""

_PROSE = re.compile(
    r"(?i)\b(?:because|can|could|do|does|how|if|means?|my|prints?|says?|should|that|this|what|when|why|would|you|your)\b"
)
"""Words of a sentence that speaks of an error, which no program that reports one uses."""


def _in_prose(event: LogEvent, match: Match) -> bool:
    """Whether a line only mentions the text of a signature in a sentence."""
    before = event.text[: match.start].rpartition("\n")[2].rpartition(": ")[2]
    crash = match.signature.family in _LAST_WORDS
    return crash and event.kind == "line" and _PROSE.search(before) is not None


_ERROR_LINE = re.compile(
    r"(?:^|[\s\]:|*])(?:fatal error|fatal|error|ERROR|Error|FATAL|FAILED|panic|Killed|Aborted)\b ?(?:\([^)]*\))?[:\]!]"
    r"|^(?:Segmentation fault|Aborted|Killed|Bus error|Illegal instruction)"
)


def source_of(event: LogEvent) -> tuple[str, int | None, str | None, str | None]:
    """What wrote an event: log, rank, process and host."""
    return event.log, event.rank, event.process, event.host


def is_of_launcher(judged: JudgedEvent) -> bool:
    """Whether a launcher of several processes reports a death."""
    return reports_death(judged) and bool(
        judged.match and judged.match.signature.family != "python"
    )


def speaks_of_death(event: LogEvent) -> bool:
    """Whether an error message reports that a process died."""
    first = event.message.partition("\n")[0][:LOOKED_AT]
    marked = event.level in ("ERROR", "FATAL") and not _STOPPED.search(first)
    return marked and _DEATH.search(first) is not None


def signalled(judged: JudgedEvent) -> bool:
    """Whether the event reports that a signal terminated a process."""
    return reports_death(judged) and bool(judged.match and (judged.match.status or 0) > SIGNALS)


def is_killed(judged: JudgedEvent) -> bool:
    """Whether the event reports a signal that explains a death.

    Launchers terminate processes with SIGTERM, and a process aborts itself after it has printed why.
    """
    status = judged.match.status if judged.match else None
    explained = (SIGNALS + LinuxSignal.SIGTERM, SIGNALS + LinuxSignal.SIGABRT)
    return status is not None and status > SIGNALS and status not in explained


OF_PEERS = frozenset({"communication_failure", "interrupted", "timeout"})
"""Categories of what a process reports when another one has died."""


def judge(event: LogEvent, catalog: Catalog, number: int) -> JudgedEvent:
    """The judgment of an event, which is the given one in reading order."""
    match = match_event(event, catalog)
    if match is None and event.kind == "line" and LOSS_NAN.search(event.message[:LOOKED_AT]):
        return JudgedEvent(event, None, "cause", "loss_nan", WEAK, number)
    role = match.signature.role if match else "cause"
    category = match.signature.category if match else ""
    if match and match.signature.general:
        category = stated_reason(event.type, event.message or event.text, category)
    claim = _claim(event, match) if role == "cause" else 0
    if claim and not category:
        # What a line without any mark of an error says in quotation marks it only mentions.
        wording = event.message if claim > WEAK else _QUOTED.sub("", event.message)
        last = event.frames[-1] if event.frames else None
        place = (last.file, last.code) if last else ("", "")
        category = read(event.type, wording, *place).category
        if not category and event.level in ("ERROR", "FATAL"):
            category = category_of(read_message(wording))
        if not category:
            claim = 0 if event.kind == "line" and claim <= PLAIN_LINE else claim - NAMELESS
    if (
        match is None
        and event.kind == "exception"
        and not event.handled
        and points_elsewhere(event.text)
    ):
        role, claim = "wrapper", 0
    return JudgedEvent(event, match, role, category, claim, number)


def match_event(event: LogEvent, catalog: Catalog) -> Match | None:
    """The best signature of an event.

    A line is matched by its start: lines below it are separate events. The first line identifies an
    exception; further lines can be other output that followed, so they can add a
    cause but not make the exception harmless.
    """
    numbers = {n for anchor in event.anchors for n in catalog.anchors[anchor]}
    for text in _texts(event) if numbers else ():
        first = text.find("\n")
        for match in catalog.matches(text, event.block, numbers):
            adds = match.signature.role == "cause" and event.kind == "exception"
            if adds or first < 0 or match.start < first:
                return match
    return None


def _texts(event: LogEvent) -> tuple[str, ...]:
    """The texts that signatures are matched against: the message; else the line with its level, and for a
    native stack the whole block.
    """
    if event.kind == "line":
        return (event.text, event.shown)
    native = not is_header(event.block.split("\n", 1)[0])
    return (event.text, event.block) if native else (event.text,)


SIGNALLED = frozenset({"KeyboardInterrupt", "SignalException"})


def is_signal(event: LogEvent) -> bool:
    """Whether an exception is Python's response to a signal."""
    return event.type.rpartition(".")[2] in SIGNALLED


def has_exited(report: JudgedEvent) -> bool:
    """Whether a report names an exit status that is no signal's."""
    return bool(report.match and 0 < (report.match.status or 0) < SIGNALS)


def asserts_in_kernel(judged: JudgedEvent) -> bool:
    """Whether an assertion failed in a kernel, which the program learns at one of its next calls."""
    return judged.match is not None and judged.match.signature.name.startswith("cuda/kernel-")


_OBSERVERS = frozenset({"kernel", "kubernetes", "schedulers", "slurm"})
"""Families of signatures that report a process from outside: other processes may continue to write."""

_LAST_WORDS = frozenset({"native", "shell"})
"""Families of signatures whose crashes and kills are those of the job's own process, not a worker's."""


def ends_process(judged: JudgedEvent) -> bool:
    """Whether an event by itself shows that its process exited."""
    if judged.event.uncaught or judged.event.type == "Fatal Python error":
        return True
    if judged.match is None or judged.role not in ("cause", "wrapper"):
        return False
    if judged.role == "cause" and judged.event.kind == "line" and judged.claim <= FAINT:
        return False
    crashed = judged.category == "process_crash" or judged.match.signature.status > SIGNALS
    return is_from_outside(judged) or (crashed and judged.match.signature.family in _LAST_WORDS)


def refuses_arguments(match: Match | None) -> bool:
    """Whether a program printed its usage and exited, because it does not accept its arguments."""
    return match is not None and match.signature.name.startswith("python/usage-")


def is_from_outside(judged: JudgedEvent) -> bool:
    """Whether the scheduler, the kernel or a driver reports the event, not the process itself."""
    if judged.match is None:
        return False
    signature = judged.match.signature
    lost_gpu = judged.category == "gpu_fault" and signature.root_cause == "infrastructure"
    return signature.family in _OBSERVERS or (lost_gpu and judged.event.kind == "line")


def reports_death(judged: JudgedEvent) -> bool:
    """Whether a launcher or a shell reports with this event that a process of the job failed."""
    return judged.role in ("cascade", "wrapper") and bool(judged.match and judged.match.status)


def only_advises(event: LogEvent) -> bool:
    """Whether a line that is not marked as an error advises, or reports what could happen."""
    if event.type or event.level == "FATAL":
        return False
    wording = event.message[:LOOKED_AT]
    if _CONDITIONAL.search(wording):
        return True
    marked = event.level == "ERROR" or _ERROR_LINE.search(wording)
    return not marked and _ADVICE.search(wording) is not None


def _claim(event: LogEvent, match: Match | None) -> int:
    if event.handled:
        return 0
    if event.cut_off and not event.frames:
        return WEAK + NAMELESS  # the header alone: it tells of a death, and of nothing else
    if event.kind == "exception":
        # An abort follows from what the native code printed before it.
        aborted = event.type == "Fatal Python error" and event.message == "Aborted"
        # Who calls sys.exit has logged why before.
        return ERROR_LINE if aborted or event.type == "SystemExit" else EXCEPTION
    if event.level == "FATAL":
        return FATAL_LINE
    if match is None and _OBSERVER.match(event.message):
        return FAINT
    if event.level in QUIET:
        return WEAK if match or event.type else FAINT
    if event.message.startswith("+ "):
        return 0  # a shell that traces its commands
    columns = event.message.partition("\n")[0].count(" | ") + 1
    if event.level is None and not event.type and columns >= COLUMNS:
        return FAINT  # a row of a table
    wording = event.message[:LOOKED_AT]
    if match and (_SPOKEN_OF.match(event.text[match.end :]) or _in_prose(event, match)):
        return FAINT
    if match and match.signature.family == "shell" and not match.signature.status:
        return PLAIN_LINE  # a script continues after what its shell complains about
    if match and (refuses_arguments(match) or _STATES.match(event.text[: match.start])):
        return ERROR_LINE
    if event.type:
        return BARE_EXCEPTION
    if _STOPPED.search(wording):
        return FAINT
    if event.shown.startswith("    ") or _NO_STATEMENT.search(wording):
        return 0
    if match:
        return PLAIN_LINE
    if _NO_PROSE.search(wording):
        return 0
    if event.level == "ERROR" or _ERROR_LINE.search(_SHOWN.sub("", wording)):
        return PLAIN_LINE
    return WEAK
