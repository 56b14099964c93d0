"""For how many unlabelled failures something knows the category, and what decided it.

Of projects that are held out only totals are shown or kept.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from common import data_file, rate, save, verdict_of
from rivals import Rival
from rivals.choice import add_options, chosen, not_run
from split import held

from epochzero.diagnose import Diagnoser, Diagnosis
from epochzero.logs.source import Log

KNOWING = ("signature", "reading")
LAST_RESORT = "internal_error"
Cases = Mapping[str, Sequence[Mapping[str, Any]]]


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--misses", action="store_true", help="print the development cases that nothing knows"
    )
    add_options(parser)
    options = parser.parse_args()
    unlabelled = data_file("failures/unlabelled.jsonl.gz")
    cases = _parts(unlabelled.records)
    # Rivals that name no category cover nothing.
    rivals = [rival for rival in chosen(options) if rival.name in ("keyword_rules", "openpai")]
    diagnoser = Diagnoser(redact=False)
    numbers: dict[str, Any] = {"signatures": len(diagnoser.catalog)}
    for part, records in cases.items():
        found = {r["id"]: diagnoser.diagnose([Log("log", text=r["log"].encode())]) for r in records}
        numbers[part] = _measured(list(found.values()))
        numbers[part]["rivals"] = {rival.name: _rival(rival, records) for rival in rivals}
        _print(part, numbers[part])
        if options.misses and part == "development":
            _print_misses(found)
    if options.misses:
        print("(held-out cases are not printed)")
    versions = {rival.name: rival.version for rival in rivals}
    left_out = {name: told for name, told in not_run(options).items() if name == "openpai"}
    data = [unlabelled.described()]
    save("diagnosis_coverage", numbers, data=data, rivals=versions | left_out)


def _parts(records: Sequence[Mapping[str, Any]]) -> Cases:
    return {
        "development": [record for record in records if not held(record["id"])],
        "held_out": [record for record in records if held(record["id"])],
    }


def _measured(found: Sequence[Diagnosis]) -> dict[str, Any]:
    basis = Counter(each.basis if each.outcome == "failed" else each.outcome for each in found)
    return {
        "cases": len(found),
        "coverage": rate(sum(map(_known, found)), len(found)),
        "by_basis": {name: rate(number, len(found)) for name, number in basis.most_common()},
        "categories": dict(Counter(map(verdict_of, found)).most_common()),
    }


def _known(found: Diagnosis) -> bool:
    """Whether a signature or the general reading named another category than the last resort."""
    knows = found.outcome == "failed" and found.basis in KNOWING
    return knows and found.category != LAST_RESORT


def _rival(rival: Rival, records: Sequence[Mapping[str, Any]]) -> Mapping[str, object]:
    """A rival covers what it names another category for than its own last resort."""
    named: Counter[str] = Counter()
    for record in records:
        named[rival.answer([Log("log", text=record["log"].encode())]).category] += 1
    covered = len(records) - named["not_a_failure"] - named[LAST_RESORT]
    return {"coverage": rate(covered, len(records)), "categories": dict(named.most_common())}


def _print(part: str, measured: Mapping[str, Any]) -> None:
    print(f"{part}: {measured['cases']} cases")
    print(f"    {'epochzero':16}{measured['coverage']:.3f}   {measured['by_basis']}")
    for name, told in measured["rivals"].items():
        print(f"    {name:16}{told['coverage']:.3f}")


def _print_misses(found: Mapping[str, Diagnosis]) -> None:
    for case, each in found.items():
        if not _known(each):
            told = each.root.text.strip()[:140] if each.root else ""
            print(f"  {case} {each.outcome} {each.basis} {each.category}: {told}")


if __name__ == "__main__":
    main()
