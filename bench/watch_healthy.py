"""How many trainings `--fail-on any` terminates: healthy ones, of which it should be none, and faulty ones.

Reads the records that ``bench/watch_runs.py`` has stored, of whichever programs were run. A training is terminated if any
finding is confirmed at any of the moments of ``bench/train_watch_confirmation.py``; under the earlier rule, if any had a
confidence of one half.

    python bench/watch_healthy.py --records DIR
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from common import save
from train_watch_confirmation import SHARES
from watch import Case, cases_of_lab, is_named

from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.live import TOLD
from epochzero.run.watch.model import CONFIRMED
from epochzero.run.watch.verdict import conclude
from lab.watch.cases import VARIED, held_out_varied


def main() -> None:
    """Reads, counts, stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True, help="directory with the records")
    folder = parser.parse_args().records
    numbers: dict[str, Counter[str]] = {}
    for case in cases():
        digest = hashlib.sha256(case.program.encode()).hexdigest()[:12]
        stored = folder / f"{case.name.replace('/', '.')}.{digest}.jsonl"
        if stored.exists():
            history = read_records(json.loads(line) for line in stored.read_bytes().splitlines())
            part = "faulty" if case.truth else f"healthy, {_part(case)}"
            numbers.setdefault(part, Counter()).update(counted(case, history))
    print(json.dumps(numbers, indent=1))
    save(
        "watch_healthy",
        dict(numbers),
        data=[{"name": "lab/watch", "programs": sum(n["trainings"] for n in numbers.values())}],
    )


def cases() -> Iterator[Case]:
    """The trainings of the lab; of faulty ones only those that are not held out."""
    yield from (case for case in cases_of_lab() if not (case.truth and case.held_out))
    held_out = held_out_varied()
    for path in sorted((VARIED / "healthy").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Case(f"varied/{path.stem}", "varied_healthy", text, held_out=path.stem in held_out)


def _part(case: Case) -> str:
    if case.part == "varied_healthy":
        return "varied, held out" if case.held_out else "varied, open"
    return "held out before" if case.held_out else "open"


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
        named=bool(case.truth) and last is not None and is_named(case, last.word),
    )


if __name__ == "__main__":
    main()
