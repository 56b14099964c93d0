"""Asking a scheduler's own commands."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

_SECONDS = 20.0
"""A controller under load answers late; a job that is being killed has 30 s by default (KillWait of Slurm)."""


def answer(words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What a command prints; empty if it is missing, fails or does not answer."""
    try:
        done = subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if done.returncode else done.stdout


def seconds(text: object) -> float | None:
    """Seconds of ``[days-][hours:]minutes[:seconds]`` with at least one colon; None for anything else."""
    days, _, time = str(text).rpartition("-")
    parts = time.split(":")
    if not (
        2 <= len(parts) <= 3 and all(part.isdigit() for part in parts) and (days or "0").isdigit()
    ):
        return None
    hours, minutes, rest = (int(part) for part in (parts if len(parts) == 3 else [*parts, "0"]))
    return float(int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + rest)
