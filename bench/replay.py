"""How often a failure comes again: from its capture, and by simply running the job once more.

The failing trainings of ``lab/replay``: 30 that fail at the same update in each run, 20 that fail by chance.
Each runs under ``epochzero run --capture`` (a stochastic one up to three times, until it fails), is replayed, and
is run once more as it is. A failure counts as come again where it is the same exception at the same line, or the
same loss that is not finite, after as many steps of optimizers. Where a loss is not finite, the step is also
walked through, operator by operator. Every second case of each kind is held out: it is counted, not shown.

The size of a capture is told beside that of all weights, buffers and states of optimizers, which a checkpoint has to
hold. What capturing costs in time is measured by ``capture_overhead.py``; its share here is of jobs of seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from common import REPOSITORY, rate, save

from epochzero.errors import InputError
from epochzero.run.replay import replay
from epochzero.run.replay.model import Capture
from epochzero.run.replay.reading import read_capture
from epochzero.run.replay.verdict import is_same

sys.path.insert(0, str(REPOSITORY))
from lab.replay.cases import Case, all_cases

WANTED = {"deterministic": 0.9, "stochastic": 0.7, "size": 2.0, "overhead": 0.03}
TRIES = 3
LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Attributes:
        captured: whether a failure was captured that is the one of the case.
        replayed: whether the same failure came from the capture.
        again: whether the same failure came by running the job once more.
        again_somewhere: the same, after any number of steps.
        exactness: of the replayed losses.
        walked: what the walk through the step says; empty where none was asked for.
        size: of the capture, relative to a checkpoint; None for a job without weights.
        size_bytes: of the capture.
        share: of the job's time that capturing took.
        why: what went wrong, for a person.
    """

    captured: bool = False
    replayed: bool = False
    again: bool = False
    again_somewhere: bool = False
    exactness: str = ""
    walked: str = ""
    size: float | None = None
    size_bytes: int = 0
    share: float = 0.0
    why: str = ""


def main() -> None:
    """Runs the lab, prints what is open, and keeps the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", default=sys.executable, metavar="FILE", help="that runs the jobs"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at a time")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a case; default: all, and kept")
    options = parser.parse_args()
    cases = [case for case in all_cases() if not options.names or case.name in options.names]
    done: list[tuple[Case, Outcome]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, outcome in zip(
            cases, pool.map(lambda c: measured(c, options.python), cases), strict=True
        ):
            done.append((case, outcome))
            shown = "held out" if case.held_out and not options.names else _shown(outcome)
            print(f"{len(done)}/{len(cases)} {case.name}: {shown}", flush=True)
    numbers = {
        **{
            f"{kind}{part}": _scored(
                [o for c, o in done if c.kind == kind and (not part or c.held_out)]
            )
            for kind in ("deterministic", "stochastic")
            for part in ("", "/held_out")
        },
        "wanted": WANTED,
    }
    print(numbers)
    if not options.names:
        save("replay", numbers)


def measured(case: Case, python: str) -> Outcome:
    """Runs a case, replays it, and runs it again."""
    with tempfile.TemporaryDirectory(prefix="bench-replay-") as folder:
        work = Path(folder)
        tries = TRIES if case.kind == "stochastic" else 1
        captures = (captured(case, python, work / str(number)) for number in range(tries))
        capture = next((one for one in captures if one is not None), None)
        if capture is None:
            return Outcome(why="nothing was captured")
        expected = capture.nonfinite[0] if capture.nonfinite and not case.exceptions else capture.failure  # fmt: skip
        lines = case.program.splitlines()
        at = lines[expected.line - 1].strip() if 0 < expected.line <= len(lines) else ""
        right = not case.exceptions or (
            expected.type.rpartition(".")[2] in case.exceptions and at in case.lines
        )
        second = captured(case, python, work / "again")
        # It ran in another folder.
        somewhere = second is not None and is_same(
            capture.failure, replace(second.failure, path=capture.failure.path)
        )
        try:
            found = replay(capture.folder.parents[1], environment=os.environ, bisect=case.nonfinite)
        except InputError as error:
            return Outcome(right, why=str(error), again_somewhere=somewhere)
        at_step = (
            found.position.steps == capture.position.steps or found.expected.kind == "nonfinite"
        )
        of_checkpoint = capture.size_bytes / capture.checkpoint_bytes if capture.checkpoint_bytes else None  # fmt: skip
        return Outcome(
            captured=right,
            replayed=right and found.reproduced and at_step,
            again=somewhere and second is not None and second.position == capture.position,
            again_somewhere=somewhere,
            exactness=found.exactness,
            walked=(found.walked.why if found.walked else "not reached") if case.nonfinite else "",
            size=of_checkpoint,
            size_bytes=capture.size_bytes,
            share=capture.spent_s / capture.elapsed_s,
            why="; ".join((found.came.text if found.came else "", *found.differences)),
        )


def captured(case: Case, python: str, folder: Path) -> Capture | None:
    """The capture of a run of the program; None where it did not fail."""
    folder.mkdir()
    (folder / "train.py").write_text(case.program, encoding="utf-8")
    home = folder / "home"
    subprocess.run(
        [sys.executable, "-m", "epochzero", "run", "--capture", "--quiet", "--", python, "train.py"],
        cwd=folder, env={**os.environ, "EPOCHZERO_HOME": str(home)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    attempts = sorted(home.glob("**/capture"))
    if not attempts:
        return None
    try:
        return read_capture(attempts[0].parent)
    except InputError:
        return None


def _scored(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    count = len(outcomes)
    sizes = [o.size for o in outcomes if o.size is not None]
    exact = [o for o in outcomes if o.replayed and o.exactness != "none"]
    walked = [o for o in outcomes if o.walked]
    return {
        "cases": count,
        "captured": sum(o.captured for o in outcomes),
        "replayed": sum(o.replayed for o in outcomes),
        "replayed_share": rate(sum(o.replayed for o in outcomes), count),
        "again": sum(o.again for o in outcomes),
        "again_share": rate(sum(o.again for o in outcomes), count),
        "again_somewhere": sum(o.again_somewhere for o in outcomes),
        "bit_exact_share": rate(sum(o.exactness == "bits" for o in exact), len(exact)),
        "walked": len(walked),
        "walked_to_an_operator": sum(o.walked == "not_finite" for o in walked),
        "size_as_wanted": sum(size <= WANTED["size"] for size in sizes),
        "size_of_checkpoint_median": round(statistics.median(sizes), 2) if sizes else None,
        "size_bytes_most": max((o.size_bytes for o in outcomes), default=None),
        "size_bytes_median": round(statistics.median([o.size_bytes for o in outcomes])) if outcomes else None,
        "spent_share_median": round(statistics.median([o.share for o in outcomes]), 4) if outcomes else None,
    }  # fmt: skip


def _shown(outcome: Outcome) -> str:
    told = {name: value for name, value in asdict(outcome).items() if name != "why"}
    return f"{told}" + ("" if outcome.replayed else f" {outcome.why[:300]}")


if __name__ == "__main__":
    main()
