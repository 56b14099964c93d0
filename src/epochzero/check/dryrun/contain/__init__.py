"""Which containment this system allows: found by trying, once a process.

From the best to the least: namespaces with overlays; Landlock with interception inside the job's
Python; interception alone. `docs/decisions/0012-containment.md` says why these.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from epochzero import platform
from epochzero.check.dryrun.contain.model import Containment, Exit, FileChange, Limits, Means
from epochzero.scratch import scratch_directory

_INSIDE = Path(__file__).parent / "inside"
_TRIAL_S = 10
_ELSEWHERE = "Memory is limited for each process, not for all processes together."

_DESCRIPTIONS = {
    Means.NAMESPACES: ("namespaces and overlays", ""),
    Means.LANDLOCK: (
        "interception, and Landlock for files",
        "Compiled code and other programs that write files themselves fail where they would have "
        "written; they can reach the network.",
    ),
    Means.INTERCEPTION: (
        "interception",
        "Compiled code and other programs are not contained: the files that they write remain.",
    ),
}


def launcher() -> Sequence[str]:
    """The command that reads a request and runs a job as it says."""
    return (sys.executable, "-I", "-S", str(_INSIDE))


@cache
def best_containment() -> Containment:
    """The best that this system allows.

    The calls that build the better ones are Linux's: elsewhere their numbers mean other calls.
    """
    if platform.NAME != "Linux":
        found = containment_by(Means.INTERCEPTION, f"{platform.NAME} has no namespaces")
        return replace(found, leaks=f"{found.leaks} {_ELSEWHERE}")
    reason = ""
    for means in (Means.NAMESPACES, Means.LANDLOCK):
        refused = _tried(means)
        if refused is None:
            return containment_by(means, reason)
        reason = reason or refused
    return containment_by(Means.INTERCEPTION, reason)


def containment_by(means: Means, reason: str = "") -> Containment:
    """The containment by some means, whether or not this system allows it."""
    description, leaks = _DESCRIPTIONS[means]
    return Containment(means, description, leaks, reason)


def _tried(means: Means) -> str | None:
    """Why the system refuses a containment; None where it does not."""
    with scratch_directory() as scratch:
        request: dict[str, Any] = {
            "command": [],
            "how": means.value,
            "scratch": scratch,
            "writable": [],
            "keep": "",
            "limits": {"written_bytes": 1 << 20},
        }
        account = _asked(request)
    refused = account.get("refused")
    return None if refused is None else str(refused)


def _asked(request: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        done = subprocess.run(
            launcher(),
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=_TRIAL_S,
            env={},
            check=False,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"refused": str(error)}
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return {"refused": last[0] if last else "no answer"}
    return answer if isinstance(answer, dict) else {"refused": "no answer"}
