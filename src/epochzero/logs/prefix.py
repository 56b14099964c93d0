"""Parses the prefixes of log lines: rank, process, host, time, level.

Launchers and loggers add prefixes to one another (a torchrun rank, a timestamp, a level);
`split` removes them one by one and returns their content. Indentation after a prefix is preserved, because
tracebacks require it.
"""

from __future__ import annotations

import json
import re
import string
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import NamedTuple

from epochzero import launchers


class Prefix(NamedTuple):
    """Content of a line's prefixes; None for what they do not contain.

    Attributes:
        rank: global rank of the process.
        process: another identifier of the process: a pid, a pod, an actor.
        host: the node.
        time: seconds since the epoch (UTC is assumed without a zone); for a clock time
            without a date, seconds since midnight.
        level: DEBUG, INFO, WARNING, ERROR or FATAL.
    """

    rank: int | None = None
    process: str | None = None
    host: str | None = None
    time: float | None = None
    level: str | None = None

    def over(self, other: Prefix) -> Prefix:
        """This prefix, with missing values taken from ``other``."""
        known = {k: v for k, v in self._asdict().items() if v is not None}
        return other._replace(**known)


NOTHING = Prefix()

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")


def strip_ansi(text: str) -> str:
    """``text`` without colours and other terminal escapes."""
    return _ANSI.sub("", text) if "\x1b" in text else text


_DATE = r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|\d{4}\d{2}\d{2})"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?: ?[AP]M)?"
_ZONE = r"(?:Z|[+-]\d{2}:?\d{2})?"
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|FATAL|CRITICAL|EXCEPTION|SEVERE)"

# In this order: the first match at the start of the line is removed, then the next is tried.
_PREFIXES = (
    # torch's own excepthook, Accelerate and others
    r"\[(?:rank|Rank|RANK|default|trainer|worker|local_rank|gpu|GPU)[ :=_]{0,2}(?P<rank>\d+)\]:? ?",
    # CRI files of Kubernetes
    rf"(?P<time>{_DATE}T{_CLOCK}{_ZONE}) (?:stdout|stderr) [FP] ?",
    # NCCL: host:pid:tid [gpu] NCCL INFO text; its name stays, as messages are known by it
    r"(?P<host>[\w.-]+):(?P<process>\d+):\d+ \[-?\d+\] (?=NCCL (?P<level>INFO|WARN|TRACE) )",
    # glog and TensorFlow: E0308 10:54:51.906103 16912 file.cc:263]
    rf"(?P<glog>[IWEF])\d{{4}}(?:\d{{4}})? (?P<time>{_CLOCK}) +(?P<process>\d+) (?=[\w./-]+:\d+\])",
    # the same from PyTorch: [E502 10:54:51.906103000 file.cpp:263] and [E file.cpp:263]
    rf"\[(?P<glog>[IWEFC])\d{{3,4}} (?P<time>{_CLOCK}) (?=[\w./-]+:\d+\])",
    r"\[(?P<glog>[IWEFC]) (?=[\w./-]+\.\w+:\d+\])",
    # Tornado, Jupyter and Optuna: [W 2024-05-01 12:00:00,123 ServerApp]
    rf"\[(?P<glog>[DIWEC]) (?:\d{{6}} )?(?P<time>(?:{_DATE} )?{_CLOCK})(?: [\w.:-]{{1,60}})?\] ",
    rf"\[(?P<glog>[IWEF])\d{{4}} (?P<time>{_CLOCK}) (?=[\w./-]+:\d+\])",
    r"(?P<glog>[IWEF])\d{4} \d\d:\d\d:(?P<epoch>\d{10}\.\d+) +(?P<process>\d+) (?=[\w./-]+:\d+\])",
    rf"\[?(?P<time>{_DATE} {_CLOCK}): (?P<glog>[IWEF]) ",
    rf"\[(?P<time>{_DATE} {_CLOCK}) (?P<glog>[IWEFC]) (?P<process>\d+) \d+\] ",
    r"(?P<glog>[IWEF]) (?=[\w./-]+\.(?:cc|cpp|cu|h|hpp|c):\d+\])",
    # a shell's name for a background job: [1]+  Killed, [1]  + 4411 killed
    r"\[\d{1,4}\](?:[+-] {1,2}| {2,}[+-]? ?)(?:\d+ +)?(?=[A-Za-z])",
    # pytest, for its own errors
    r"(?P<level>INTERNALERROR)> ?",
    # Airflow, which prints the output of a task as INFO
    r"\{[\w./-]+:\d+\} (?:INFO|(?P<level>DEBUG|WARNING|ERROR|CRITICAL)) - ",
    # GitHub runners and other collectors
    rf"(?P<time>{_DATE}T{_CLOCK}{_ZONE})(?: |$)",
    # Transformers: [WARNING|trainer.py:12] 2024-05-01 12:00:00,123 >> text
    rf"\[(?P<level>{_LEVEL})\|[\w./-]+:\d+\] (?:(?P<time>{_DATE} {_CLOCK}) )?>> ",
    # [2024-05-01 12:00:00,123][module][ERROR] and (2024-05-01 12:00:00)
    rf"[\[(](?P<time>{_DATE}[ T,]{{1,2}}{_CLOCK}{_ZONE})(?:[,:]? (?P<level>{_LEVEL})\b"
    r"[^\])\n]{0,60}|[ ,:][^\]\n]{0,60})?[\])]:?[ \t]?",
    # 2024-05-01 12:00:00,123 - module - ERROR - text
    rf"(?P<time>{_DATE}[ T]{_CLOCK}{_ZONE})(?:[ \t]*[-|:][ \t]|[ \t]+|$)",
    rf"(?:[A-Z][a-z]{{2}} +\d{{1,2}}) (?P<time>{_CLOCK}) (?P<host>[\w.-]+) (?=\S+:)",
    r"\[?(?P<time>\d{2}:\d{2}:\d{2}(?:[.,]\d{1,6})?)\]?(?=\s)[ \t]?",
    rf"\[(?P<level>{_LEVEL}|debug|info|warning|warn|error|fatal|critical) *\](?::|[ \t]-)?[ \t]?"
    r"(?:(?:[\w.:-]+ ){1,3}- )?",
    # vLLM: ERROR 05-01 12:00:00 engine.py:12], and Paddle with a year
    rf"(?P<level>{_LEVEL}) (?:\d{{4}}-)?\d\d-\d\d (?P<time>{_CLOCK}) (?=\[?[\w./-]+:\d+\])",
    rf"(?P<level>{_LEVEL})(?:[ \t]*[|:-][ \t]+|:(?=[\w.]+:)|[ \t]+(?=[\w.]+\.\w+[:\s]))",
)


@cache
def _prefixes() -> tuple[str, ...]:
    """All patterns; those of launchers come first, since they are narrower."""
    own = chain.from_iterable(launcher.log_prefixes for launcher in launchers.every())
    return (*(prefix.pattern for prefix in own), *_PREFIXES)


_DIGITS, _CAPITALS = string.digits, string.ascii_uppercase
_ANY = "[(_." + _DIGITS + string.ascii_letters
_OPENINGS = (
    (r"\[?", "[" + _DIGITS),
    (r"\[", "["),
    (r"\(", "("),
    (r"\{", "{"),
    (r"[\[(]", "[("),
    (r"(?P<time>", _DIGITS),
    (r"(?P<glog>", "IWEFC"),
    (r"(?P<level>", _CAPITALS),
    (r"(?:[A-Z]", _CAPITALS),
)
"""Start of each pattern, with the characters that a matching line can start with."""


_FIRST = frozenset(_ANY + "{")
"""All characters that a prefix can start with."""


class _ByFirst(dict[str, tuple[re.Pattern[str], ...]]):
    """The patterns that can match a line, by its first character: most lines require two or three.

    They are compiled on first use: a short log uses few of them.
    """

    def __missing__(self, first: str) -> tuple[re.Pattern[str], ...]:
        if first not in _FIRST:
            return ()  # Not cached: there are a million other characters.
        self[first] = tuple(
            re.compile(pattern) for pattern in _prefixes() if first in _firsts(pattern)
        )
        return self[first]


def _firsts(pattern: str) -> str:
    return next((chars for start, chars in _OPENINGS if pattern.startswith(start)), _ANY)


_CANDIDATES = _ByFirst()
# Only after a time: name and level of the logger.
_RECORD = re.compile(
    rf"(?:\[[\w.]+\](?=\[)|[\w./:-]+[ \t]+)?[-|]?[ \t]*\[?(?P<level>{_LEVEL})\b\]?[ \t]*[|:-]?[ \t]+"
)
_WARNING = re.compile(r"\S+\.py:\d+: (?:[A-Z]\w*Warning): |(?:[A-Z]\w*)?[Ww]arning: ")
_MAYBE_PREFIXED = re.compile(
    r"[\[({0-9A-Z]|[\w.]+[_-][\w.-]+ +\| |[\w.-]+:\d+:\d+ \[|(?:worker|node|host|gpu|ip)"
)
_PADDED_LEVEL = re.compile(rf" {{1,2}}\[(?P<level>{_LEVEL})\] +")
"""A level behind a blank, as programs print it that colour only the level."""
_BARE_RANK = re.compile(r" *(\d{1,5}): ?")
_LEVELS = {
    "I": "INFO",
    "W": "WARNING",
    "E": "ERROR",
    "F": "FATAL",
    "C": "FATAL",
    "D": "DEBUG",
    "WARN": "WARNING",
    "ERR": "ERROR",
    "CRITICAL": "FATAL",
    "EXCEPTION": "ERROR",
    "INTERNALERROR": "ERROR",
    "SEVERE": "ERROR",
    "NOTICE": "INFO",
    "TRACE": "DEBUG",
}
_MOST_PREFIXES = 5
_BLANK = frozenset(("", " ", "\t"))
"""Characters that no prefix starts with, but most lines of a traceback do."""


def split(line: str, *, bare_ranks: bool = False) -> tuple[Prefix, str]:
    """Removes the prefixes of a line.

    Args:
        line: one line without terminal escapes.
        bare_ranks: the log was written by ``srun -l``, where ``3: text`` means rank 3.

    Returns:
        The content of the prefixes, and the rest of the line.
    """
    if not bare_ranks and line[:1] in _BLANK:
        level = _PADDED_LEVEL.match(line)
        return (_prefix(level.groupdict()), line[level.end() :]) if level else (NOTHING, line)
    found: dict[str, str] = {}
    rest = line
    if bare_ranks and (bare := _BARE_RANK.match(rest)):
        rest = rest[bare.end() :]
        # The daemon of a node writes through the first of its tasks.
        if not rest.startswith("slurmstepd"):
            found["rank"] = bare[1]
    for _ in range(_MOST_PREFIXES):
        if not _MAYBE_PREFIXED.match(rest):
            break
        for pattern in _CANDIDATES[rest[:1]]:
            if match := pattern.match(rest):
                found |= {k: v for k, v in match.groupdict().items() if v is not None}
                rest = rest[match.end() :]
                break
        else:
            break
    if "time" in found and "level" not in found and (record := _RECORD.match(rest)):
        found["level"] = record["level"]
        rest = rest[record.end() :]
    if "level" not in found and "arning: " in rest and _WARNING.match(rest):
        found["level"] = "WARNING"
    return (_prefix(found), rest) if found or rest is not line else (NOTHING, line)


def _prefix(found: dict[str, str]) -> Prefix:
    level = found.get("level") or found.get("glog")
    return Prefix(
        rank=int(found["rank"]) if "rank" in found else None,
        process=found.get("process"),
        host=found.get("host"),
        time=_time(found),
        level=_LEVELS.get(level.upper(), level.upper()) if level else None,
    )


def _time(found: dict[str, str]) -> float | None:
    if "epoch" in found:
        return float(found["epoch"])
    return _seconds(found["time"]) if "time" in found else None


_MESSAGES = ("log", "msg", "message", "event", "text", "line")
_TRACES = ("exc_info", "exception", "traceback", "stack_trace", "stack", "exc_text")
_LEVEL_KEYS = ("level", "levelname", "severity", "lvl")
_TIMES = ("time", "timestamp", "ts", "@timestamp", "asctime", "date")
_SOURCES = ("kubernetes", "labels", "stream_labels", "ecs", "docker")
"""Where collectors put a table with what their source is called."""
_SOURCE_NAMES = ("pod_name", "pod", "instance", "container_id", "host")
_ISO = re.compile(rf"{_DATE}[ T]{_CLOCK}{_ZONE}")
_FLUENT_BIT = re.compile(
    r'\[\d+\] \S+: \[\[?(?P<epoch>\d+\.\d+)[^"]{0,40}\{.{0,2000}?"(?:log|message|msg)"=>"(?P<text>(?:[^"\\]|\\.)*)"'
)
"""What Fluent Bit's stdout output prints of a record."""
_LOGCLI = re.compile(
    rf'(?P<time>{_DATE}T{_CLOCK}{_ZONE} )?\{{(?P<labels>\w+="[^"\n]{{0,200}}"(?:, ?\w+="[^"\n]{{0,200}}")*)\}} ?'
)
"""What Loki's logcli puts in front of a line."""
_POD_LABEL = re.compile(r'\b(?:pod|instance|container)="([^"]+)"')
_FIELD = re.compile(r'\s+"(?:message|log|line)": (?P<text>"(?:[^"\\]|\\.)*"),?$')
"""The field of an event in an indented JSON document, as ``aws logs get-log-events`` prints it."""


def split_envelope(line: str) -> tuple[Prefix, list[str]] | None:
    """What a log collector's record says: its prefix, and the lines that it wraps.

    Read are JSON objects, one a line (Docker's json-file driver, Fluent Bit, Loki, most structured
    loggers), Fluent Bit's text output, logcli's lines, and events in indented JSON.

    Returns:
        None if the line is not such a record.
    """
    first = line[:1]
    if first == "{":
        if line[1:2] == '"':
            return _json_record(line)
        return _logcli_record(line)
    if first == "[" and (found := _FLUENT_BIT.match(line)):
        texts = _unescaped(f'"{found["text"]}"')
        return Prefix(time=float(found["epoch"])), texts
    if first == " " and (found := _FIELD.match(line)):
        return NOTHING, _unescaped(found["text"])
    return None


def _logcli_record(line: str) -> tuple[Prefix, list[str]] | None:
    found = _LOGCLI.match(line)
    if found is None:
        return None
    pod = _POD_LABEL.search(found["labels"])
    return Prefix(process=pod[1] if pod else None), [line[found.end() :]]


def _unescaped(text: str) -> list[str]:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        value = text[1:-1]
    return str(value).rstrip("\n").split("\n")


def _json_record(line: str) -> tuple[Prefix, list[str]] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    messages = [record[key] for key in _MESSAGES if isinstance(record.get(key), str)][:1]
    messages += [record[key] for key in _TRACES if isinstance(record.get(key), str)][:1]
    if not messages:
        return None
    level = next((str(record[key]).upper() for key in _LEVEL_KEYS if key in record), None)
    rank = record.get("rank")
    prefix = Prefix(
        rank=rank if isinstance(rank, int) else None,
        process=_source(record),
        time=next((_json_time(record[key]) for key in _TIMES if key in record), None),
        level=_LEVELS.get(level, level) if level else None,
    )
    return prefix, [text for part in messages for text in part.rstrip("\n").split("\n")]


def _source(record: dict[str, object]) -> str | None:
    """The name of what wrote a record, where its collector says it."""
    for key in _SOURCES:
        table = record.get(key)
        if isinstance(table, dict):
            for name in _SOURCE_NAMES:
                if isinstance(table.get(name), str):
                    return str(table[name])
    return None


def _json_time(value: object) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    found = _ISO.match(str(value))
    return _seconds(found[0]) if found else None


_NUMBERS = re.compile(r"\d+")


def _seconds(text: str) -> float | None:
    """A timestamp as seconds; None if it is not a valid time."""
    clock_at = text.index(":")
    numbers = _NUMBERS.findall(text)
    fraction = re.search(r"[.,](\d{1,9})(?!.*[.,]\d)", text[clock_at:])
    try:
        if len(numbers) < 6:
            hour, minute, second = (int(n) for n in numbers[:3])
            whole = float(hour * 3600 + minute * 60 + second)
        else:
            whole = _dated(text, [int(n) for n in numbers[:6]])
    except ValueError:
        return None
    return whole + (float(f"0.{fraction[1]}") if fraction else 0.0)


def _dated(text: str, numbers: list[int]) -> float:
    first, second, third, hour, minute, sec = numbers
    year, month, day = (first, second, third) if first > 31 else (third, first, second)
    if month > 12:
        month, day = day, month
    if text.endswith("PM") and hour < 12:
        hour += 12
    elif text.endswith("AM") and hour == 12:
        hour = 0
    stamp = datetime(year, month, day, hour, minute, sec, tzinfo=UTC).timestamp()
    if zone := re.search(r"([+-])(\d{2}):?(\d{2})$", text):
        offset = int(zone[2]) * 3600 + int(zone[3]) * 60
        stamp -= offset if zone[1] == "+" else -offset
    return stamp


_BARE_RANKS = re.compile(rf"\n{_BARE_RANK.pattern}".encode())


def uses_bare_ranks(lines: bytes) -> bool:
    """Whether ``srun -l`` wrote the lines: nearly all start with ``rank: ``."""
    bare = len(_BARE_RANKS.findall(b"\n" + lines))
    return bare >= 3 and bare >= 0.8 * sum(1 for line in lines.split(b"\n") if line.strip())
