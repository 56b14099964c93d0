"""Counts which findings last in healthy trainings; writes ``src/epochzero/run/watch/confirmation.json``.

Over healthy trainings of ``lab/watch`` that were not used to build the searches: those that ``split.toml`` files and
``bench/watch.py`` hold out, and the open half of ``lab/watch/varied``. Counting spends a look at the first. The held-out
half of ``varied`` is left for the measurement. Each program runs once under the watcher; a finding lasts if it does so
at any of the moments after a quarter, a half, three quarters and all of its iterations.

    python bench/train_watch_confirmation.py --records DIR --jobs 2
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from watch import Case, cases_of_lab
from watch_runs import recorded

from epochzero.run.watch.confirmation import lasting
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory, read_records
from lab.watch.cases import VARIED, held_out_varied

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/run/watch/confirmation.json"
SHARES = (0.25, 0.5, 0.75)


def main() -> None:
    """Runs, counts, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True, help="directory that stores records")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    trainings, counts = 0, Counter[str]()
    for case, records in recorded(unused(), options.records, options.jobs):
        if records is not None:
            trainings += 1
            words = lasting_ever(read_records(records))
            counts.update(words)
            print(case.name, *sorted(words), file=sys.stderr)
    stored = {"trainings": trainings, "lasting": dict(sorted(counts.items()))}
    TARGET.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def unused() -> Iterator[Case]:
    """Healthy trainings that no search was built on."""
    held_out = held_out_varied()
    yield from (case for case in cases_of_lab() if case.held_out and not case.truth)
    for path in sorted((VARIED / "healthy").glob("*.py")):
        if path.stem not in held_out:
            yield Case(f"varied/{path.stem}", "varied_healthy", path.read_text(encoding="utf-8"))


def lasting_ever(history: TrainingHistory) -> set[str]:
    """The words of findings that last at any of the moments."""
    moments = [history.until(int(share * history.count)) for share in SHARES]
    return {word for one in (*moments, history) for word in lasting(one, catalogue(), catalogue())}


if __name__ == "__main__":
    main()
