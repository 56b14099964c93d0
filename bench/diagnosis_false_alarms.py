"""How often a run that ended well is said to have failed.

The logs: multi-node runs of MLPerf Training v2.1, and the lab's jobs that succeed with a
frightening output. Tools see the logs only, no exit code.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import lab_jobs, rate, save
from mlperf import MlperfLogs, reached_target
from rivals import Answer, answer_of
from rivals.choice import add_options, chosen, not_run

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log, find_logs

Tool = Callable[[Sequence[Log]], Answer]


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print the false alarms")
    parser.add_argument(
        "--mlperf", type=Path, metavar="DIR", help="clone of mlcommons/training_results_v2.1"
    )
    add_options(parser)
    options = parser.parse_args()
    rivals = chosen(options)
    diagnoser = Diagnoser()
    tools: dict[str, Tool] = {"epochzero": lambda logs: answer_of(diagnoser.diagnose(logs))}
    tools |= {rival.name: rival.answer for rival in rivals}
    good = [find_logs([job.folder]) for job in lab_jobs() if job.good]
    # A function each, since every tool goes through the jobs anew.
    sets: dict[str, Callable[[], Iterable[Sequence[Log]]]] = {"lab": lambda: good}
    data: list[Mapping[str, object]] = [{"name": "lab/logs of good jobs", "jobs": len(good)}]
    if options.mlperf:
        runs = MlperfLogs(options.mlperf)
        sets["mlperf"] = lambda: ([log] for log in runs if reached_target(log))
        data.append(runs.described())
    numbers: dict[str, Any] = {"signatures": len(diagnoser.catalog)}
    for name, jobs in sets.items():
        numbers[name] = {}
        for tool, answer in tools.items():
            shown = options.misses and tool == "epochzero"
            numbers[name][tool] = _measured(jobs(), answer, shown=shown)
            print(f"{name:10}{tool:16}{_line(numbers[name][tool])}")
    if not options.mlperf:
        numbers["mlperf"] = "not run"
    versions = {rival.name: rival.version for rival in rivals}
    save("diagnosis_false_alarms", numbers, data=data, rivals=versions | not_run(options))


def _measured(jobs: Iterable[Sequence[Log]], tool: Tool, *, shown: bool) -> Mapping[str, object]:
    alarms: Counter[str] = Counter()
    count = 0
    seconds = 0.0
    for logs in jobs:
        count += 1
        start = time.perf_counter()
        answer = tool(logs)
        seconds += time.perf_counter() - start
        if answer.failed:
            alarms[answer.category or "failed"] += 1
            if shown:
                print(f"  {logs[0].name}: {answer.category}\n      {answer.text[:200]}")
    total = alarms.total()
    return {
        "jobs": count,
        "false_alarms": total,
        "share": rate(total, count),
        "seconds": round(seconds, 1),
        "by_category": dict(alarms.most_common()),
    }


def _line(measured: Mapping[str, Any]) -> str:
    share = 100 * measured["share"]
    told = f"{measured['false_alarms']} of {measured['jobs']}"
    return f"{told:>14} {share:6.2f} %  {measured['seconds']:8.1f} s"


if __name__ == "__main__":
    main()
