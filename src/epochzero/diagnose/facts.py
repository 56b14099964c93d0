"""Facts about a job in addition to its logs: how it ended, when it ran, on how many GPUs.

Facts are passed by the user or found next to the log: ``facts.json`` (our own format), the output of
``sacct``, of ``kubectl describe pod`` or ``kubectl get pod -o json``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from epochzero.diagnose.linux_signals import LinuxSignal
from epochzero.errors import InputError, reading
from epochzero.file_access import open_file
from epochzero.logs.source import FACTS_NAMES, is_facts_name

OWN = FACTS_NAMES[0]
MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Facts:
    """How a job ended and what it used; None for unknown values.

    Attributes:
        exit_code: as seen by its parent; 128 + n for signal n.
        signal: number of the signal that terminated it.
        state: of the scheduler, such as FAILED, OUT_OF_MEMORY, TIMEOUT, OOMKilled.
        start, end: seconds since the epoch.
        gpus: how many it held.
        message: what the scheduler says of the end, in its own words.
        notes: sentences on files with facts that could not be used.
    """

    exit_code: int | None = None
    signal: int | None = None
    state: str | None = None
    start: float | None = None
    end: float | None = None
    gpus: int | None = None
    message: str | None = None
    notes: tuple[str, ...] = ()

    def __or__(self, other: Facts) -> Facts:
        """These facts, with unknown values taken from ``other``; the notes of both."""
        missing = {
            f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None
        }
        return replace(self, **missing, notes=self.notes + other.notes)

    @property
    def exit_status(self) -> int | None:
        """Exit code in the shell's form: 128 + n for signal n."""
        if self.signal:
            return 128 + self.signal
        if self.exit_code is not None and self.exit_code < 0:
            return 128 - self.exit_code
        return self.exit_code

    @property
    def ended_well(self) -> bool:
        return self.exit_status == 0 and (self.state or "COMPLETED") in ("COMPLETED", "Succeeded")


def signal_name(number: int) -> str:
    """SIGKILL for 9; ``signal 77`` for numbers without a name."""
    try:
        return LinuxSignal(number).name
    except ValueError:
        return f"signal {number}"


def find_facts(paths: Iterable[Path]) -> Facts:
    """Facts next to the logs: in a given directory, or in the directory of a given file.

    Returns:
        The facts; `Facts.notes` names a ``facts.json`` that could not be used. Other files may
        have such a name by coincidence.
    """
    facts = Facts()
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    for folder in folders:
        for path in _facts_files(folder):
            try:
                facts = facts | read_facts(path)
            except InputError as error:
                if path.name == OWN:
                    facts = facts | Facts(notes=(f"{error}; it was ignored",))
    return facts


def _facts_files(folder: Path) -> Iterator[Path]:
    try:
        named = sorted(path for path in folder.iterdir() if is_facts_name(path.name))
        files = [path for path in named if path.is_file()]
    except OSError:
        return
    for pattern in FACTS_NAMES:
        yield from (path for path in files if fnmatchcase(path.name.lower(), pattern))


def read_facts(path: Path) -> Facts:
    """Facts from one file: ``facts.json``, ``sacct`` output, or ``kubectl`` output about a pod.

    Raises:
        InputError: the file cannot be read or has none of these formats.
    """
    with reading(path), open_file(path, pipes=True) as stream:
        text = stream.read().decode("utf-8", "replace")
    try:
        if text.lstrip().startswith(("{", "[")):
            return _from_json(json.loads(text))
        if "JobID" in text or "ExitCode" in text:
            return _from_sacct(text)
        if "Exit Code:" in text or "Containers:" in text:
            return _from_describe(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{path}: invalid JSON at {place}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not the output of sacct or kubectl") from error
    raise InputError(f"{path} is neither facts.json nor output of sacct or kubectl")


def _from_json(raw: Any) -> Facts:
    if not isinstance(raw, dict):
        raise InputError(f"expected a JSON object with some of {', '.join(_own_fields())}")
    if raw.get("items"):
        raw = raw["items"][0]
    if "status" in raw or raw.get("kind") == "Pod":
        return _from_pod(raw)
    values: dict[str, Any] = {}
    for name, (read, expected) in _own_fields().items():
        try:
            values[name] = read(raw.get(name))
        except (ValueError, TypeError, LookupError) as error:
            given = json.dumps(raw[name])[:MOST_SHOWN]
            raise InputError(f"{name} is {given}, expected {expected}") from error
    return Facts(**values)


def _own_fields() -> Mapping[str, tuple[Callable[[Any], Any], str]]:
    """Parser and expected form of each field of ``facts.json``."""
    time = "a time such as 2024-05-01T12:00:00, or seconds since 1970"
    return {
        "exit_code": (_whole, "an integer"),
        "signal": (_signal, "the number or name of a signal, such as SIGKILL"),
        "state": (_word, "a string such as TIMEOUT"),
        "start": (_time, time),
        "end": (_time, time),
        "gpus": (_whole, "an integer"),
        "message": (_word, "a string"),
    }


def _from_pod(pod: Mapping[str, Any]) -> Facts:
    status = pod.get("status", {})
    gpus = 0
    for container in pod.get("spec", {}).get("containers", []):
        limits = container.get("resources", {}).get("limits", {})
        gpus += sum(int(n) for name, n in limits.items() if name.endswith("/gpu"))
    ended: Mapping[str, Any] = {}
    for container in status.get("containerStatuses", []):
        state = container.get("state", {}).get("terminated")
        ended = state or container.get("lastState", {}).get("terminated") or ended
    return Facts(
        exit_code=_whole(ended.get("exitCode")),
        signal=_signal(ended.get("signal")),
        state=_word(status.get("reason") or ended.get("reason") or status.get("phase")),
        start=_time(ended.get("startedAt")),
        end=_time(ended.get("finishedAt")),
        gpus=gpus or None,
        message=_word(status.get("message") or ended.get("message")),
    )


def _from_describe(text: str) -> Facts:
    def after(label: str) -> str | None:
        found = re.search(rf"^\s*{label}:\s+(.+)$", text, re.MULTILINE)
        return found[1].strip() if found else None

    code = after("Exit Code")
    gpus = re.search(r"^\s*[\w.]+/gpu:\s+(\d+)", text, re.MULTILINE)
    reasons = re.findall(r"^\s*Reason:\s+(\w+)", text, re.MULTILINE)
    states = [
        reason for reason in reasons if reason not in ("Error", "Completed", "CrashLoopBackOff")
    ]
    return Facts(
        exit_code=int(code) if code else None,
        signal=_signal(after("Signal")),
        state=(states or reasons or [None])[0],
        start=_time(after("Started")),
        end=_time(after("Finished")),
        gpus=int(gpus[1]) if gpus else None,
        message=after("Message"),
    )


def _from_sacct(text: str) -> Facts:
    lines = [line for line in text.splitlines() if line.strip()]
    if "|" in lines[0]:
        names = [name.strip() for name in lines[0].split("|")]
        rows = [[cell.strip() for cell in line.split("|")] for line in lines[1:]]
    else:
        # Fixed columns: the rule below the header shows where each starts and ends.
        rule = [set(line.strip()) <= {"-", " "} for line in lines].index(True)
        spans = [found.span() for found in re.finditer(r"-+", lines[rule])]
        names = [lines[rule - 1][a:b].strip() for a, b in spans]
        rows = [[line[a:b].strip() for a, b in spans] for line in lines[rule + 1 :]]
    return facts_of_sacct([dict(zip(names, row, strict=False)) for row in rows])


def facts_of_sacct(rows: Sequence[Mapping[str, str]]) -> Facts:
    """Facts from the ``sacct`` rows of one job: its own row, then those of its steps.

    Args:
        rows: field -> text. Times without a zone are assumed to be UTC.

    Raises:
        ValueError: an exit code or a time is not valid.
    """
    job = rows[0]
    state = job.get("State", "").split(" ")[0].rstrip("+")
    if any(row.get("State", "").startswith("OUT_OF_ME") for row in rows):
        state = "OUT_OF_MEMORY"
    codes = [row.get("ExitCode", "") for row in rows]
    code = next((c for c in codes if c not in ("", "0:0")), codes[0])
    exit_code, _, number = code.partition(":")
    gpus = re.search(r"gres/gpu(?::\w+)?=(\d+)", " ".join(job.values()))
    return Facts(
        exit_code=int(exit_code) if exit_code else None,
        # 125 is not a signal: Slurm writes it for the out-of-memory killer.
        signal=int(number) if number and 0 < int(number) < 65 else None,
        state=state or None,
        start=_time(job.get("Start")),
        end=_time(job.get("End")),
        gpus=int(gpus[1]) if gpus else None,
    )


def _whole(value: object) -> int | None:
    return None if value is None else int(str(value))


def _word(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    raise TypeError(f"{value!r} is not a state")


def _signal(value: object) -> int | None:
    if value is None or value == "":
        return None
    text = str(value)
    if text.isdigit():
        return int(text) or None
    return int(LinuxSignal[text if text.startswith("SIG") else f"SIG{text}"])


def _time(value: object) -> float | None:
    if value is None or value in ("", "Unknown", "None"):
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    text = str(value)
    for pattern in ("%a, %d %b %Y %H:%M:%S %z",):
        try:
            return datetime.strptime(text, pattern).timestamp()
        except ValueError:
            continue
    stamp = datetime.fromisoformat(text)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
