"""How many trainings `--fail-on any` terminates: healthy ones, of which it should be none, and faulty ones.

Open programs of ``lab/watch`` alone, since searches were mended on them; ``--held-out`` adds the held-out healthy ones of
``lab/watch/varied`` and counts the evaluation in ``lab/watch/evaluations.json``. A training is terminated if any finding is
confirmed at any of the moments `SHARES`; under the earlier rule, if any had a confidence of one half. A fault that is not proved is
no root but a suspect. A program of more than `watch_runs.CPU_S` seconds is read as a training that continues.

    python bench/watch_healthy.py --records DIR             # run what has no record yet: an hour
    python bench/watch_healthy.py --records DIR --stored    # read the records that exist

With ``--public DIR`` it is the examples of public repositories instead, see ``public_trainings.py``, in a Python that has
torchvision, Lightning, Keras, PyTorch Geometric, Gymnasium and what the programs import. One of fewer than `LEAST` iterations
shows nothing and is not counted. ``--list`` names another list, whose result has its name.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import watch_runs
from common import save
from public_trainings import LIST, PublicTraining, public_trainings
from watch import Case, cases_of_lab, is_named
from watch_runs import recorded, stored_path

from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import CONFIRMED, TOLD
from epochzero.run.watch.verdict import conclude
from lab.watch.cases import count_evaluation, held_out_varied, varied_programs

LEAST = 30
SHARES = (0.25, 0.5, 0.75)


def main() -> None:
    """Runs, counts, stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True, help="directory that stores records")
    parser.add_argument("--stored", action="store_true", help="only programs that have a record")
    parser.add_argument("--held-out", action="store_true", help="also those of varied; is counted")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--public", type=Path, help="directory with the public repositories")
    parser.add_argument("--list", type=Path, default=LIST, help="of public trainings")
    parser.add_argument("--cpu-s", type=int, default=watch_runs.CPU_S, help="of each training")
    options = parser.parse_args()
    watch_runs.CPU_S = options.cpu_s
    every = public_trainings(options.public, options.list) if options.public else cases()
    chosen = [case for case in every if options.held_out or not case.held_out]
    # Healthy ones first: they answer the question, and a run may be interrupted.
    chosen.sort(key=lambda case: bool(case.truth))
    total = len(chosen)
    if options.stored:
        chosen = [case for case in chosen if stored_path(case, options.records).exists()]
    numbers: dict[str, Counter[str]] = {}
    evaluated = []
    for case, records in recorded(chosen, options.records, options.jobs):
        history = read_records(records or ())
        if records is None or (options.public and history.count < LEAST):
            continue
        found = counted(case, history)
        numbers.setdefault(_part(case), Counter()).update(found)
        evaluated.append(case)
        print(case.name, dict(+found), file=sys.stderr)
    name = options.list.stem.replace("_trainings", "") if options.public else "healthy"
    name = f"watch_{name}"
    count_evaluation(name, (case.name for case in evaluated if case.held_out))
    data = {"name": name, "programs": len(evaluated), "of": total, "cpu_s": options.cpu_s}
    if options.public:
        data["repositories"] = len({case.name.split("/")[0] for case in evaluated})
    save(name, dict(sorted(numbers.items())), data=[data])


def cases() -> Iterator[Case]:
    """The open trainings of the lab, healthy and faulty, and all healthy ones of ``varied``."""
    yield from (case for case in cases_of_lab() if not case.held_out)
    held_out = held_out_varied()
    for name, path in varied_programs().items():
        program = path.read_text(encoding="utf-8")
        yield Case(f"varied/{name}", "varied_healthy", program, held_out=name in held_out)


def _part(case: Case) -> str:
    if case.truth:
        return "faulty"
    if isinstance(case, PublicTraining):
        return f"{case.part}/held_out" if case.held_out else case.part
    if case.part != "varied_healthy":
        return "healthy"
    return "varied/held_out" if case.held_out else "varied"


def counted(case: Case, history: TrainingHistory) -> Counter[str]:
    """What is to be counted of one training."""
    moments = [history.until(int(share * history.count)) for share in SHARES]
    verdicts = [conclude(one) for one in (*moments, history)]
    last = verdicts[-1].root
    findings = [one for verdict in verdicts for one in verdict.findings]
    return Counter(
        trainings=1,
        terminated=any(one.state == CONFIRMED for one in findings),
        would_be_terminated_at_one_half=any(one.confidence >= TOLD for one in findings),
        root=last is not None,
        root_on_the_way=any(verdict.root is not None for verdict in verdicts),
        suspect=verdicts[-1].suspect is not None,
        named=bool(case.truth) and last is not None and is_named(case, last.word),
    )


if __name__ == "__main__":
    main()
