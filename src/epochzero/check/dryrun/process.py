"""Runs a job's command within limits, and tells how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero.check.dryrun.contain.model import Ended, Limits

__all__ = ["RECORDS_DESCRIPTOR", "SPEC_DESCRIPTOR", "run_contained"]

SPEC_DESCRIPTOR = 3
RECORDS_DESCRIPTOR = 4
_GRACE_S = 3.0


def run_contained(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    spec: bytes,
) -> Ended:
    """Run a command; the job finds ``spec`` on one descriptor and writes records to the other."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="epochzero-") as scratch:
        for name, content in (("spec", spec), ("records", b""), ("output", b"")):
            Path(scratch, name).write_bytes(content)
        redirected = f'exec "$@" 3<"{scratch}/spec" 4>>"{scratch}/records"'
        with Path(scratch, "output").open("wb") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", redirected, "sh", *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            limit = _wait(process, limits.seconds + _GRACE_S)
        printed = Path(scratch, "output").read_bytes()[-limits.output_bytes :]
        records = tuple(Path(scratch, "records").read_bytes().splitlines())
    code = process.returncode
    name = signal.Signals(-code).name if code < 0 else ""
    return Ended(
        why="It took too long, and was ended." if limit else f"It ended with {name or code}.",
        code=None if limit or name else code,
        signal="" if limit else name,
        limit=limit,
        seconds=time.monotonic() - start,
        output=printed.decode("utf-8", "replace"),
        records=records,
    )


def _wait(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Wait for it, then end all that it left; the limit that it broke."""
    limit = ""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        limit = "time"
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return limit
