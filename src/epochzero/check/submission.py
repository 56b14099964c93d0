"""Whether the scheduler itself would accept a submission: it is asked, and queues nothing.

Only a cluster knows its partitions, accounts, limits and nodes. Where the program that submits is on the path, it is
called with the option that tests (`epochzero.launchers.Launcher.tests`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from epochzero import launchers
from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.launch.model import COMMAND

RULE_ID = "submission-refused"
_SECONDS = 20.0
_MOST = 400
_MOST_LINES = 6
_UNREACHABLE = re.compile(
    r"unable to contact|connection (?:refused|timed out)|socket timed out|zero bytes were transmitted"
    r"|communication connection failure|protocol authentication error|could not establish a configuration"
    r"|connection to the server .* was refused|unable to connect to the server",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"^(?:sbatch|srun|salloc|error|allocation failure|batch job submission failed)\s*:\s*",
    re.IGNORECASE,
)
_VARIABLE = "EPOCHZERO_TESTS_SUBMISSION"
"""Set for the scheduler's program: a filter of the site that calls `check` must not ask again."""


def refusals(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[Finding | Unknown]:
    """What the scheduler answers about a submission; nothing if it accepts it or cannot be asked.

    Args:
        command: the command line, by words.
        folder: in which it would run.
        environment: of the shell.
    """
    name = PurePath(command[0]).name if command else ""
    launcher = launchers.by_name().get(name)
    program = (
        shutil.which(command[0], path=environment.get("PATH", os.defpath)) if command else None
    )
    if launcher is None or not launcher.tests or program is None or _VARIABLE in environment:
        return
    place = SourceLocation(COMMAND, code=" ".join(command))
    what = f"whether {name} accepts the submission"
    try:
        done = _asked([program, *launcher.tests, *command[1:]], folder, environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Unknown(what, f"it cannot be queried: {error}", place)
        return
    if done.returncode == 0:
        return
    answer = _answer(done.stderr or done.stdout)
    if _UNREACHABLE.search(done.stderr):
        yield Unknown(what, f"the scheduler does not respond: {answer}", place)
        return
    has = _resources(launcher.resources, folder, environment)
    yield Finding(
        RULE_ID,
        "error",
        "illegal_argument",
        "initialization",
        place,
        f"The scheduler refuses this submission: {answer}",
        f"{name}: {answer}",
        "Request resources that the cluster has" + (f": {has}." if has else "."),
    )


def _resources(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What the scheduler has, as far as it says so."""
    if not command:
        return ""
    try:
        done = _asked(command, folder, environment)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = re.sub(r"\b1 (node|CPU)s\b", r"1 \1", done.stdout).replace("(null)", "no GPUs")
    lines = text.splitlines() if done.returncode == 0 else []
    more = f"; {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    return "; ".join(lines[:_MOST_LINES]) + more


def _asked(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**environment, _VARIABLE: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        text=True,
        errors="replace",
    )


def _answer(text: str) -> str:
    """The lines of an answer as one, without the program's name and each fact once."""
    facts = []
    for line in text.splitlines():
        fact = line.strip()
        while (shorter := _PREFIX.sub("", fact)) != fact:
            fact = shorter
        if fact and fact not in facts:
            facts.append(fact)
    return "; ".join(facts)[:_MOST] or "it returned no reason"
