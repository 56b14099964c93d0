"""Adds the diagnosis to the experiment: a run of MLflow or W&B, a log directory of TensorBoard.

Each tool is written to by its own library in a process of its own (`child/`), with the Python of
the job, since that is where the library is: what it prints, how long it takes, that it is not there,
touches nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Decision, JobEvent, Start

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis

TOOLS = ("mlflow", "tensorboard", "wandb")

_CHILD = Path(__file__).parent / "child"
_PATIENCE_S = 60.0
_NOT_INSTALLED = 3
_RUN_CONTEXT = "MLFLOW_RUN_CONTEXT"
_RUN = "MLFLOW_RUN_ID"


def run_tags(environment: Mapping[str, str], *, job: str, attempt: int) -> dict[str, str]:
    """What to add to the job's environment so that its runs of MLflow are found again, on any server.

    MLflow gives each run that it makes the tags in this variable.
    """
    try:
        tags = dict(json.loads(environment.get(_RUN_CONTEXT) or "{}"))
    except (ValueError, TypeError):
        return {}  # The user's own: what is wrong with it, MLflow says.
    return {
        _RUN_CONTEXT: json.dumps(tags | {"epochzero.job": job, "epochzero.attempt": str(attempt)})
    }


def leave_note(
    tool: str,
    started: Start,
    diagnosis: Diagnosis,
    decision: Decision | None,
    *,
    environment: Mapping[str, str],
    clock: Clock,
) -> JobEvent:
    """Writes the diagnosis of an attempt into a tool; takes seconds, at most a minute.

    Returns:
        ``note_left``, which says where, or ``note_failed``, which says why not.
    """
    note = json.dumps(
        {
            "tags": dict(_tags(started, diagnosis, decision)),
            "text": _text(started, diagnosis, decision),
            "run": environment.get(_RUN, ""),
            "job": started.job,
            "attempt": str(started.attempt),
            "since": started.time,
            "folders": _folders(started),
        }
    )
    details = {"tool": tool}
    try:
        where = _write(tool, note, started, environment)
    except InputError as error:
        text = f"the diagnosis was not added to {tool}: {error}"
        return JobEvent(*clock.now(), "note_failed", text, details=details)
    text = f"the diagnosis was added to {tool}: {where}"
    return JobEvent(*clock.now(), "note_left", text, details=details | {"where": where})


def _write(tool: str, note: str, started: Start, environment: Mapping[str, str]) -> str:
    """Where the note was put, with the first Python that has the tool.

    Raises:
        InputError: nowhere.
    """
    done = None
    for python in dict.fromkeys((_python(started, environment), sys.executable)):
        try:
            done = subprocess.run(
                [python, str(_CHILD / f"{tool}_note.py")],
                input=note,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_PATIENCE_S,
                cwd=started.folder,
                env=dict(environment),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(f"no response within {_PATIENCE_S:.0f} s") from error
        except OSError as error:
            raise InputError(f"{python} cannot be executed: {error.strerror}") from error
        if done.returncode != _NOT_INSTALLED:
            break
    output = done.stdout.splitlines() if done is not None and done.returncode == 0 else []
    if not output:
        problem = done.stderr.splitlines() if done is not None else []
        raise InputError(problem[-1] if problem else "it exited without a message")
    return output[-1]


def _tags(
    started: Start, diagnosis: Diagnosis, decision: Decision | None
) -> Iterator[tuple[str, str]]:
    yield "category", diagnosis.category
    yield "fingerprint", diagnosis.fingerprint
    yield "retry", diagnosis.retry
    if decision is not None:
        yield "decision", decision.action
    yield "job", started.job
    yield "attempt", str(started.attempt)


def _text(started: Start, diagnosis: Diagnosis, decision: Decision | None) -> str:
    """The diagnosis as Markdown, which these tools show."""
    frame = diagnosis.user_frame
    parts = [f"**{diagnosis.title or 'Failed'}** (attempt {started.attempt})"]
    parts += [_code(diagnosis.root.text)] if diagnosis.root else []
    parts += [f"At `{frame.file}:{frame.line}`"] if frame else []
    parts += [f"Fix: {fix}" for fix in diagnosis.fixes[:1]]
    parts += [f"Retry: {decision.reason}"] if decision is not None and decision.reason else []
    parts.append(_code(f"epochzero show {started.job}"))
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """A block of code in Markdown, whatever the text holds."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def _folders(started: Start) -> list[str]:
    """Where the job may have written: its folder, and those that its command names."""
    named = (word.rpartition("=")[2] for word in started.command)
    paths = (os.path.join(started.folder, word) for word in named if word)
    return list(dict.fromkeys([started.folder, *(path for path in paths if os.path.isdir(path))]))


def _python(started: Start, environment: Mapping[str, str]) -> str:
    """The job's Python: its program, the one next to it, as for ``torchrun``, or that of the path."""
    path = environment.get("PATH", os.defpath)
    program = shutil.which(os.path.join(started.folder, started.command[0])) or shutil.which(
        started.command[0], path=path
    )
    if program and os.path.basename(program).startswith("python"):
        return program
    neighbour = os.path.join(os.path.dirname(program), "python") if program else ""
    return shutil.which(neighbour) or shutil.which("python", path=path) or sys.executable
