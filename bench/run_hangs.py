"""Trainings of two to four ranks that hang or drag, and some that are only silent, each under `epochzero run`.

A hang counts as found if the report names the rank and the line that `lab/hangs` marks within a minute of the
job's last output. A training with a slow rank counts as found if that rank, and no other, is reported within a
minute of its first step, and its data as the cause where that is so. A silent job counts as a false report if
a hang or a slow rank is reported. TraceML, with the Python of an environment that has it, gets the trainings with
a slow rank too, for as long as they may take to be reported.

    python bench/run_hangs.py [--set first|second] [--half open|held_out] [--stall 15] [--traceml PYTHON]
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import LAB, save
from rivals import traceml

from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import HANG_EVENT, SLOW_RANK_EVENT, JobEvent, Record, Sample

__all__ = ["Played", "play"]

STALL_S = 15.0
IN_TIME_S = 60.0
PATIENCE_S = 240.0
SILENT = "silent_"
MARK = "# <- waits"
DRAG = re.compile(r"Slow: (?P<rank>\d+)(?P<data>, data)?\.")
RANKS = re.compile(r"Ranks: (\d+)\.")
TORCHRUN = Path(sys.executable).with_name("torchrun")

Played = dict[str, Any]


def play(script: Path, stall: float) -> Played:
    """Runs one job until it exits, or a hang or a slow rank is reported."""
    ranks = RANKS.search(_docstring(script))
    with tempfile.TemporaryDirectory() as home:
        command = [
            *(
                sys.executable,
                "-m",
                "epochzero",
                "run",
                "--stall",
                str(stall),
                "--grace",
                "2",
                "--",
            ),
            *(
                str(TORCHRUN),
                "--standalone",
                "--nproc-per-node",
                ranks[1] if ranks else "2",
                str(script),
            ),
        ]
        environment = {**os.environ, "EPOCHZERO_HOME": home, "OMP_NUM_THREADS": "1"}
        end = time.monotonic() + PATIENCE_S
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and not _first(_records(home)):
                if time.monotonic() > end:
                    break
                time.sleep(1.0)
            code = process.poll()
            if code is None:
                process.send_signal(signal.SIGTERM)
        return _judged(script, _records(home), code)


def _judged(script: Path, records: Sequence[Record], code: int | None) -> Played:
    hang = _first(records)
    text = hang.text if hang is not None else ""
    played: Played = {
        "job": script.stem,
        "half": script.parent.name,
        "text": text,
        "exit_code": code,
    }
    if script.stem.startswith(SILENT):
        return {**played, "hangs": False, "false_hang": hang is not None, "ended_well": code == 0}
    if drag := DRAG.search(_docstring(script)):
        named = hang is not None and text.startswith(f"rank {drag['rank']} is ")
        cause = not drag["data"] or "its data takes" in text
        seconds = hang.elapsed if hang is not None else None
        return {
            **played,
            "hangs": True,
            "drags": True,
            "found": named and cause,
            "seconds": seconds,
        }
    lines = script.read_text("utf-8").splitlines()
    place = f"{script.name}:{1 + next(n for n, line in enumerate(lines) if MARK in line)}"
    named = hang is not None and "rank" in text and place in text
    seconds = float(text.split("no progress for ")[1].split(" s")[0]) if hang is not None else None
    in_time = seconds is not None and seconds <= IN_TIME_S
    return {**played, "hangs": True, "found": named and in_time, "place": place, "seconds": seconds}


def _of_traceml(python: Path, script: Path) -> dict[str, object]:
    """What TraceML says of a training with a slow rank, and whether it names that rank alone."""
    text = _docstring(script)
    drag, ranks = DRAG.search(text), RANKS.search(text)
    assert drag is not None
    said = traceml.verdict(python, script, ranks[1] if ranks else "2", IN_TIME_S)
    return {**said, "named": said["ranks"] == [int(drag["rank"])]}


def _records(home: str) -> list[Record]:
    return [
        record
        for journal in Path(home).glob(f"runs/*/*/{NAME}")
        for _, record in read_journal(journal)
        if not isinstance(record, Sample)
    ]


def _first(records: Sequence[Record]) -> JobEvent | None:
    reports = (HANG_EVENT, SLOW_RANK_EVENT)
    events = (r for r in records if isinstance(r, JobEvent) and r.what in reports)
    return next(events, None)


def _docstring(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=("first", "second"), default="first", dest="part")
    parser.add_argument("--half", choices=("open", "held_out"), help="open: nothing is saved")
    parser.add_argument("--stall", type=float, default=STALL_S, help="seconds")
    parser.add_argument("--traceml", type=Path, help="a Python that has traceml-ai")
    parser.add_argument("--job", help="only this one; nothing is saved")
    options = parser.parse_args()
    prefix = "second_" if options.part == "second" else ""
    halves = [prefix + half for half in ([options.half] if options.half else ("open", "held_out"))]
    scripts = [script for half in halves for script in sorted((LAB / "hangs" / half).glob("*.py"))]
    played = []
    for script in scripts:
        if options.job in (None, script.stem):
            played.append(play(script, options.stall))
            if options.traceml and "drags" in played[-1]:
                played[-1]["traceml"] = _of_traceml(options.traceml, script)
            print(played[-1], flush=True)
    numbers: dict[str, object] = {"stall_seconds": options.stall, "jobs": played}
    if options.traceml:
        numbers["traceml"] = {
            "version": traceml.version(options.traceml),
            "dragging": sum("drags" in job for job in played),
            "named_by_epochzero": sum("drags" in job and bool(job["found"]) for job in played),
            "named": sum(bool(job["traceml"]["named"]) for job in played if "traceml" in job),
        }
    for half in halves:
        of_half = [job for job in played if job["half"] == half]
        hung, silent = (
            [job for job in of_half if job["hangs"] is hangs] for hangs in (True, False)
        )
        numbers[half] = {
            "hung": len(hung),
            "named_with_rank_and_line_within_60_s": sum(bool(job["found"]) for job in hung),
            "of_these_drag": sum("drags" in job for job in hung),
            "dragging_that_were_named": sum("drags" in job and bool(job["found"]) for job in hung),
            "silent": len(silent),
            "false_hangs": sum(bool(job["false_hang"]) for job in silent),
            "silent_that_ended_well": sum(bool(job["ended_well"]) for job in silent),
        }
        print(half, numbers[half])
    if options.job is None and options.half != "open":
        save("run_hangs_second" if prefix else "run_hangs", numbers)


if __name__ == "__main__":
    main()
