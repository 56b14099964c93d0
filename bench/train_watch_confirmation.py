"""Counts which findings last in healthy trainings; writes ``src/epochzero/run/watch/confirmation.json``.

Over healthy trainings of ``lab/watch`` that were not used to build the searches: those that ``split.toml`` files and
``bench/watch.py`` hold out. Not those of ``lab/watch/varied``: on its open half searches were mended, and its held-out
half is left for the measurement. The evaluation is counted in ``lab/watch/evaluations.json``. Each program runs once
under the watcher; a finding lasts if it does so at any of the moments after a quarter, a half, three quarters and all
of its iterations.

    python bench/train_watch_confirmation.py --records DIR             # run what has no record yet
    python bench/train_watch_confirmation.py --records DIR --stored    # read the records that exist
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from watch import Case, cases_of_lab
from watch_runs import recorded, stored_path

from epochzero.run.watch.confirmation import lasting
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory, read_records
from lab.watch.cases import count_evaluation

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/run/watch/confirmation.json"
SHARES = (0.25, 0.5, 0.75)


def main() -> None:
    """Runs, counts, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True, help="directory that stores records")
    parser.add_argument("--stored", action="store_true", help="only programs that have a record")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = list(unused())
    if options.stored:
        chosen = [case for case in chosen if stored_path(case, options.records).exists()]
    evaluated, counts = [], Counter[str]()
    for case, records in recorded(chosen, options.records, options.jobs):
        if records is not None:
            evaluated.append(case.name)
            words = lasting_ever(read_records(records))
            counts.update(words)
            print(case.name, *sorted(words), file=sys.stderr)
    count_evaluation("train_watch_confirmation", evaluated)
    stored = {"trainings": len(evaluated), "lasting": dict(sorted(counts.items()))}
    TARGET.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def unused() -> Iterator[Case]:
    """Healthy trainings that no search was built on."""
    yield from (case for case in cases_of_lab() if case.held_out and not case.truth)


def lasting_ever(history: TrainingHistory) -> set[str]:
    """The words of findings that last at any of the moments."""
    moments = [history.until(int(share * history.count)) for share in SHARES]
    return {word for one in (*moments, history) for word in lasting(one, catalogue(), catalogue())}


if __name__ == "__main__":
    main()
