"""What a study of failures costs, and whether its statistics are right.

Time and memory of `epochzero study failures` in a fresh process, over the unlabelled reports (each with a
log that is diagnosed) and over a million made records that are diagnosed already; accuracy, macro-F1,
kappa and confusion matrix of the labelled sets beside scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from common import SEED, data_file, data_path, save, scratch
from sklearn import metrics

from epochzero import taxonomy
from epochzero.reports.statistics import accuracy, confusion, kappa, macro_f1
from epochzero.study import read_file

RECORDS = 1_000_000
LABELLED = ("failures/labelled.jsonl.gz", "failures/notebooks.jsonl.gz")
UNLABELLED = "failures/unlabelled.jsonl.gz"


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="of the made file")
    options = parser.parse_args()
    numbers: dict[str, object] = {
        "logs": _studied("logs", data_path(UNLABELLED)),
        "records": _studied("records", _made(options.records)),
        "statistics": {name: _compared(name) for name in LABELLED},
    }
    data = [data_file(name).described() for name in (UNLABELLED, *LABELLED)]
    save("study_failures", numbers, data=data, rivals={"scikit-learn": version("scikit-learn")})


def _studied(name: str, source: Path) -> Mapping[str, object]:
    """One run of the command: seconds, processor seconds, and the peak of its only process."""
    print(f"{name}: {source.name} ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = (
            sys.executable, "-m", "epochzero", "study", "failures", str(source),
            "--out", folder, "--format", "json",
        )  # fmt: skip
        began = time.perf_counter()
        with tempfile.TemporaryFile() as answer:
            child = subprocess.Popen(command, stdout=answer)
            _, status, used = os.wait4(child.pid, 0)
            elapsed = time.perf_counter() - began
            answer.seek(0)
            summary = json.load(answer) if status == 0 else {}
    if status:
        sys.exit(f"the study of {source} ended with {os.waitstatus_to_exitcode(status)}")
    numbers = {
        "read": summary["read"],
        "failures": summary["failures"],
        "bytes": source.stat().st_size,
        "seconds": round(elapsed, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_memory_mb": round(used.ru_maxrss / 1024, 1),
    }
    print(f"    {numbers}")
    return numbers


def _made(count: int) -> Path:
    """Records as `epochzero export` writes them, of 20,000 users' and projects' jobs."""
    path = scratch() / f"failures-{count}.jsonl"
    draw = random.Random(SEED)
    words = list(taxonomy.categories())[:20]
    phases = list(taxonomy.phases())
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            record = {
                "id": str(number),
                "category": draw.choice(words),
                "phase": draw.choice(phases),
                "root_cause": "environment",
                "fingerprint": f"1:{int(draw.paretovariate(0.5)) % 200_000:x}",
                "title": "A failure",
                "root_text": "RuntimeError: something of the usual length went wrong in this place",
                "user": f"user{draw.randrange(1000)}",
                "project": f"project{draw.randrange(20_000)}",
                "name": f"job{draw.randrange(100)}",
                "time": 1.7e9 + draw.random() * 3e7,
                "seconds": draw.lognormvariate(7, 2),
                "gpu_hours": draw.lognormvariate(1, 2),
                "label": {"category": draw.choice(words)},
            }
            file.write(json.dumps(record) + "\n")
    return path


def _compared(name: str) -> Mapping[str, object]:
    """Our statistics of a labelled set, and how far the reference is from them at most."""
    corpus = read_file(data_path(name))
    true, said = corpus.texts("label_category"), corpus.texts("category")
    classes, matrix = confusion(true, said)
    ours = {"accuracy": accuracy(matrix), "macro_f1": macro_f1(matrix), "kappa": kappa(matrix)}
    reference = {
        "accuracy": metrics.accuracy_score(true, said),
        "macro_f1": metrics.f1_score(true, said, average="macro", zero_division=0),
        "kappa": metrics.cohen_kappa_score(true, said),
    }
    same = (matrix == metrics.confusion_matrix(true, said, labels=list(classes))).all()
    numbers = {
        "cases": len(true),
        **{key: round(value or 0.0, 4) for key, value in ours.items()},
        "largest_difference": max(abs((ours[key] or 0.0) - reference[key]) for key in ours),
        "same_confusion_matrix": bool(same),
    }
    print(f"    {name}: {numbers}")
    return numbers


if __name__ == "__main__":
    main()
