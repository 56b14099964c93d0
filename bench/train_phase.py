"""Trains the model of phases and writes ``src/epochzero/diagnose/phase.json``.

It learns from the development half only (``bench/split.py``): the labelled failures, our labels, the
jobs of the lab, and the raw logs (``bench/raw_log_texts.py`` rebuilds them), all of which have been
evaluated. Before it writes, it measures itself by leaving projects out.

    python bench/train_phase.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from common import data_file, jsonl, lab_jobs
from learning import FOLDS, fit, fold, write
from raw_log_texts import EVALUATED, cached, default_cache, raw_logs
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.linear import LinearModel
from epochzero.diagnose.phase import TRAINING, phase_features, ruled_phase
from epochzero.logs.source import Log, find_logs
from epochzero.logs.traceback import Frame

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/diagnose/phase.json"
LABELS = Path(__file__).resolve().parent / "labels" / "development.jsonl"
PENALTY = 5.0
LAB_WEIGHT = RAW_WEIGHT = 3.0
MOST_OF_PROJECT = 4
"""Cases of a project with more count less, with the square root of their number."""


class Case(NamedTuple):
    """A failure whose phase is known."""

    project: str
    features: frozenset[str]
    ruled: str
    phase: str
    kind: str

    @property
    def weight(self) -> float:
        """How much a case counts: logs of jobs are rarer than reports, and nearer to what users have."""
        return {"lab": LAB_WEIGHT, "raw_logs": RAW_WEIGHT}.get(self.kind, 1.0)


def main() -> None:
    cases = list(_cases())
    report = _measure(cases)
    print(json.dumps(report, indent=2))
    described = {
        **Counter(case.kind for case in cases),
        "projects": len({case.project for case in cases}),
        "never": "projects for which bench/split.py says held",
    }
    write(TARGET, train(cases), trained_on=described, measured=report)


def train(cases: Sequence[Case]) -> LinearModel:
    """A model of the phases of the cases."""
    of_project = Counter(case.project for case in cases)
    return fit(
        [
            (
                case.features,
                case.phase,
                case.weight * min(1.0, sqrt(MOST_OF_PROJECT / of_project[case.project])),
            )
            for case in cases
        ],
        PENALTY,
    )


def _cases() -> Iterator[Case]:
    diagnoser = Diagnoser(redact=False)
    labels = {row["id"]: row for row in jsonl(LABELS)}
    for name in ("labelled", "unlabelled"):
        for row in data_file(f"failures/{name}.jsonl.gz").records:
            label = row.get("label") or labels.get(row["id"])
            if label and not held(row["id"]):
                logs = [Log(row["id"], text=row["log"].encode())]
                yield from _case(diagnoser, project_of(row["id"]), logs, label["phase"])
    for job in lab_jobs():
        if job.expect["outcome"] == "failed" and not held(job.name):
            phase = job.expect.get("phase", "unknown")
            yield from _case(diagnoser, job.name, find_logs([job.folder]), phase, "lab")
    for log in (log for path in EVALUATED for log in raw_logs(path)):
        text = cached(log, default_cache())
        if log.ended == "failed" and text.is_file():
            logs = [Log(Path(log.path).name, text=text.read_bytes())]
            yield from _case(diagnoser, log.repository, logs, log.phase, "raw_logs")


def _case(
    diagnoser: Diagnoser, project: str, logs: Sequence[Log], phase: str, source: str = "reports"
) -> Iterator[Case]:
    reads = [diagnoser.read(log) for log in logs]
    found = diagnoser.conclude(reads)
    if phase == "unknown" or found.outcome != "failed":
        return
    frames = [Frame(f.file, f.line, f.function, f.code) for f in found.stack]
    place = (found.root.file, found.root.line) if found.root else ("", None)
    events = (event for read in reads for event in read.events)
    before = next((e.work for e in events if (e.log, e.line) == place), frozenset[str]())
    work = before.union(*(read.work for read in reads if read.name != place[0]))
    ruled = ruled_phase(frames, found.category, trained=bool(work & TRAINING))
    kind = found.exception.type if found.exception else ""
    features = phase_features(frames, found.category, ruled, kind=kind, work=work)
    yield Case(project, features, ruled, phase, source)


def _measure(cases: Sequence[Case]) -> Mapping[str, Mapping[str, object]]:
    """Accuracy on projects that were left out of the training, and that of the rules alone."""
    right: Counter[str] = Counter()
    ruled: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for left_out in range(FOLDS):
        model = train([case for case in cases if fold(case.project) != left_out])
        for case in cases:
            if fold(case.project) == left_out:
                asked[case.kind] += 1
                right[case.kind] += (model.classify(case.features)[0] or case.ruled) == case.phase
                ruled[case.kind] += case.ruled == case.phase
    return {k: {"cases": asked[k], "right": right[k], "by_rules": ruled[k]} for k in sorted(asked)}


if __name__ == "__main__":
    main()
