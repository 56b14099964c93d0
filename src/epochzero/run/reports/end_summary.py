"""The end of a job in a few words: for a webhook, and for the termination log of a container."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochzero.diagnose.facts import signal_name
from epochzero.number_formats import counted, duration
from epochzero.redact import redact
from epochzero.run.records.model import Decision, End, Start

if TYPE_CHECKING:
    from epochzero.run.watch.model import TrainingFinding


SCHEMA = "epochzero.notice/1"
TERMINATION_LOG = Path("/dev/termination-log")
"""Where Kubernetes reads a container's last words (``terminationMessagePath``)."""
_MOST_TERMINATION_BYTES = 4096
_MOST_LINE = 500


@dataclass(frozen=True, slots=True)
class Notice:
    """How a job ended, why, and what becomes of it. Secrets are hidden.

    Attributes:
        job, name, attempt, host: which one.
        state: succeeded, failed, cancelled by its user, or ended by its launcher since another rank had
            failed.
        exit_code, signal: as in `epochzero.run.records.model.End`.
        seconds: from its start to its end.
        gpus, gpu_hours: what it held, and what that came to.
        category: of the taxonomy, or the word of the training's fault for which the job was ended; empty
            where nothing is known.
        title: what happened.
        root, rank: the line that names the first cause, and the rank that wrote it; of a training what is
            seen of its fault.
        place: ``file:line`` of the user's own code.
        fix: the act that helps most likely.
        action: retry, retry_elsewhere or stop; empty where nothing was decided.
        reason: why that, or why a retry would help or not.
        link: where a team server shows more; empty for a job of this machine.
    """

    job: str
    name: str
    attempt: int
    host: str
    state: str
    exit_code: int
    signal: int | None
    seconds: float
    gpus: int
    gpu_hours: float
    category: str = ""
    title: str = ""
    root: str = ""
    rank: int | None = None
    place: str = ""
    fix: str = ""
    action: str = ""
    reason: str = ""
    link: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, described in ``docs/run.md``."""
        return {"schema": SCHEMA, **asdict(self)}

    @property
    def has_url(self) -> bool:
        """Whether the link is an address, and not only a path on a server that does not know its own."""
        return "://" in self.link

    def lines(self) -> list[str]:
        """For people, the most important first; without the address of the server."""
        return [f"{label}: {text}" if label else text for label, text in self.facts()]

    def facts(self) -> list[tuple[str, str]]:
        """The same as label and text; the first has no label."""
        on = f" on {self.host}" if self.host else ""
        how = f"exit code {self.exit_code}" if self.signal is None else signal_name(self.signal)
        what = f"{self.title} ({self.category})" if self.category else ""
        # Often the line tells its rank itself.
        named = self.rank is None or f"rank{self.rank}]" in self.root
        cost = f"{counted(self.gpus, 'GPU')}, {self.gpu_hours:.1f} GPU hours" if self.gpus else ""
        facts = {
            "": f"{self.name} {self.state}{on} after {duration(self.seconds)} ({how})",
            "why": what,
            "line": self.root if named else f"rank {self.rank}: {self.root}",
            "code": self.place,
            "fix": self.fix,
            "retry": ": ".join(filter(None, (self.action, self.reason))),
            "cost": cost,
            "more": "" if self.has_url else self.link or f"epochzero show {self.job}",
        }
        return [(label, text) for label, text in facts.items() if text]


def notice_of(
    started: Start,
    ended: End,
    diagnosis: Mapping[str, Any] | None = None,
    decision: Decision | None = None,
    fault: TrainingFinding | None = None,
) -> Notice:
    """Puts together what is known of an attempt after its end."""
    diagnosis = diagnosis or {}
    known = _of_fault(fault) if fault is not None else _of_diagnosis(diagnosis)
    failed = {"user": "cancelled", "another_rank": "ended"}.get(ended.why, "failed")
    return Notice(
        job=started.job,
        name=_line(started.name),
        attempt=started.attempt,
        host=started.host,
        state=failed if ended.exit_code else "succeeded",
        exit_code=ended.exit_code,
        signal=ended.signal,
        seconds=round(ended.elapsed, 3),
        gpus=started.gpus,
        gpu_hours=started.gpus * ended.elapsed / 3600,
        **known,
        action=decision.action if decision else "",
        reason=_line(decision.reason if decision else diagnosis.get("retry_reason")),
    )


def _of_diagnosis(diagnosis: Mapping[str, Any]) -> dict[str, Any]:
    root = diagnosis.get("root") or {}
    frame = diagnosis.get("user_frame") or {}
    return {
        "category": diagnosis.get("category") or "",
        "title": _line(diagnosis.get("title")),
        "root": _line(root.get("text")),
        "rank": root.get("rank"),
        "place": _line(f"{frame['file']}:{frame['line']}") if frame else "",
        "fix": _line(next(iter(diagnosis.get("fixes") or ()), "")),
    }


def _of_fault(fault: TrainingFinding) -> dict[str, Any]:
    return {
        "category": fault.word,
        "title": fault.title,
        "root": _line(fault.text),
        "place": f"{fault.place.path}:{fault.place.line}" if fault.place else "",
        "fix": _line(fault.fix),
    }


def write_termination_log(notice: Notice, path: Path = TERMINATION_LOG) -> None:
    """Leaves the last words where Kubernetes shows them; nothing where there is no such file."""
    content = "\n".join(notice.lines()).encode()[:_MOST_TERMINATION_BYTES]
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, content.decode(errors="ignore").encode())
        finally:
            os.close(descriptor)


def _line(text: str | None) -> str:
    """One line of bounded length, without secrets."""
    return redact(" ".join((text or "").split()))[:_MOST_LINE]
