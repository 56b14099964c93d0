"""How often the category, the root line and the rest of a diagnosis are right.

Cases: the labelled bug reports, the notebooks, and our own labels of further reports. Each set is
split by project into development and held out; of what is held out only totals are shown or kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from common import REPOSITORY, DataFile, data_file, fold, jsonl, line_hash, save, verdict_of
from rivals import Rival
from rivals.choice import add_options, chosen, not_run
from scoring import (
    Gold,
    Scored,
    accuracy,
    calibration,
    macro_f1,
    per_category,
    with_interval,
)
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log

LABELS = REPOSITORY / "bench" / "labels"
Parts = Mapping[str, Sequence[Gold]]
Tool = Callable[[Gold], Scored]


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what development cases miss")
    add_options(parser)
    options = parser.parse_args()
    labelled = data_file("failures/labelled.jsonl.gz")
    notebooks = data_file("failures/notebooks.jsonl.gz")
    unlabelled = data_file("failures/unlabelled.jsonl.gz")
    parts = _parts(labelled, notebooks, unlabelled)
    rivals = chosen(options)
    diagnoser = Diagnoser(redact=False)
    tools: dict[str, Tool] = {"epochzero": partial(_scored, diagnoser)}
    for rival in rivals:
        tools[rival.name] = partial(_rival_scored, rival)
    numbers: dict[str, Any] = {"signatures": len(diagnoser.catalog)}
    for name, tool in tools.items():
        answers = {gold.id: tool(gold) for part in parts.values() for gold in part}
        scored = {part: [answers[gold.id] for gold in cases] for part, cases in parts.items()}
        numbers[name] = {part: _measured(name, part, each) for part, each in scored.items()}
        if name == "epochzero" and options.misses:
            for part in scored:
                if _open(part):
                    _print_misses(part, scored[part])
    _print_table(numbers, list(parts))
    data = [labelled.described(), notebooks.described(), unlabelled.described()]
    data += [_label_file(name) for name in ("development", "held_out")]
    versions = {rival.name: rival.version for rival in rivals}
    save("diagnosis_accuracy", numbers, data=data, rivals=versions | not_run(options))


def _open(part: str) -> bool:
    """Whether single cases of the part may be shown."""
    return part.endswith("/development")


def _parts(labelled: DataFile, notebooks: DataFile, unlabelled: DataFile) -> Parts:
    """All cases by set and side."""
    parts: dict[str, list[Gold]] = {}
    for name, file in (("labelled", labelled), ("notebooks", notebooks)):
        golds = [_gold(record, record["label"]) for record in file.records]
        parts[f"{name}/development"] = [gold for gold in golds if not held(gold.id)]
        parts[f"{name}/held_out"] = [gold for gold in golds if held(gold.id)]
        parts[f"{name}/all"] = golds
    reports = {record["id"]: record for record in unlabelled.records}
    for side in ("development", "held_out"):
        labels = jsonl(LABELS / f"{side}.jsonl")
        parts[f"own_labels/{side}"] = [
            _gold(reports[label["id"]], label, hashed=True) for label in labels
        ]
    return parts


def _gold(record: Mapping[str, Any], label: Mapping[str, Any], *, hashed: bool = False) -> Gold:
    evidence = label.get("evidence", ())
    return Gold(
        # The same report can be in two sets, with another label in each.
        id=("own:" if hashed else "") + record["id"],
        project=project_of(record["id"]),
        log=record["log"],
        category=label["category"],
        also=tuple(label["also"]),
        root_cause=label.get("root_cause", "unknown"),
        phase=label.get("phase", "unknown"),
        retry=label.get("retry", "unknown"),
        evidence=frozenset(evidence if hashed else map(line_hash, evidence)),
    )


def _scored(diagnoser: Diagnoser, gold: Gold) -> Scored:
    found = diagnoser.diagnose([Log("log", text=gold.log.encode())])
    return Scored(
        gold=gold,
        category=verdict_of(found),
        root=line_hash(found.root.text) if found.root else "",
        root_cause=found.root_cause,
        phase=found.phase,
        retry=found.retry,
        confidence=found.confidence,
    )


def _rival_scored(rival: Rival, gold: Gold) -> Scored:
    answer = rival.answer([Log("log", text=gold.log.encode())])
    return Scored(gold, answer.category, line_hash(answer.text) if answer.text else "")


def _measured(tool: str, part: str, scored: Sequence[Scored]) -> dict[str, Any]:
    """The numbers of one tool on one part; what the tool does not tell is left out."""
    numbers: dict[str, Any] = {"cases": len(scored)}
    if any(each.category for each in scored):
        numbers["category"] = with_interval(scored, _category_accuracy)
        numbers["category_or_also"] = with_interval(scored, _lenient_accuracy)
        numbers["macro_f1"] = with_interval(scored, _macro_f1)
        numbers["macro_f1_or_also"] = with_interval(scored, _lenient_f1)
        if _open(part):
            numbers["by_category"] = per_category((s.gold.category, s.category) for s in scored)
    rooted = [each for each in scored if each.has_root]
    if rooted:
        numbers["root_line"] = {"cases": len(rooted), **with_interval(rooted, _root_accuracy)}
    if tool == "epochzero":
        numbers |= {field: _field(scored, field) for field in ("phase", "root_cause", "retry")}
        numbers["calibration"] = calibration(scored)
    return numbers


def _category_accuracy(scored: Sequence[Scored]) -> float | None:
    return accuracy(each.exact for each in scored)


def _lenient_accuracy(scored: Sequence[Scored]) -> float | None:
    return accuracy(each.accepted for each in scored)


def _macro_f1(scored: Sequence[Scored]) -> float | None:
    return macro_f1((each.gold.category, each.category) for each in scored)


def _lenient_f1(scored: Sequence[Scored]) -> float | None:
    return macro_f1((each.gold.category, each.counted) for each in scored)


def _root_accuracy(scored: Sequence[Scored]) -> float | None:
    return accuracy(each.root_right for each in scored)


def _field(scored: Sequence[Scored], field: str) -> Mapping[str, object]:
    """Accuracy of a field where its label is known."""
    known = [each for each in scored if getattr(each.gold, field) != "unknown"]
    hits = (getattr(each, field) == getattr(each.gold, field) for each in known)
    return {"cases": len(known), "value": accuracy(hits)}


def _print_table(numbers: Mapping[str, Any], parts: Sequence[str]) -> None:
    print(f"{'':28}{'tool':16}{'n':>5}{'category':>10}{'or also':>9}{'F1':>7}{'root':>7}")
    for part in parts:
        for tool, measured in numbers.items():
            if tool != "signatures":
                _print_row(part, tool, measured[part])


def _print_row(part: str, tool: str, measured: Mapping[str, Any]) -> None:
    columns = (("category", 10), ("category_or_also", 9), ("macro_f1", 7), ("root_line", 7))
    cells = ""
    for name, width in columns:
        value = measured.get(name, {}).get("value")
        cells += f"{'-' if value is None else f'{value:.3f}':>{width}}"
    print(f"{part:28}{tool:16}{measured['cases']:>5}{cells}")


def _print_misses(part: str, scored: Sequence[Scored]) -> None:
    for each in scored:
        root_missed = each.has_root and not each.root_right
        if each.exact and not root_missed:
            continue
        kinds = ("" if each.exact else " CATEGORY") + (" ROOT" if root_missed else "")
        print(
            f"{part} {each.gold.id}{kinds}: {each.category}, wanted {each.gold.category} "
            f"{list(each.gold.also)}"
        )
        for line in each.gold.log.splitlines():
            if line_hash(line) in each.gold.evidence:
                print(f"    wanted {fold(line)[:160]}")
            if line_hash(line) == each.root:
                print(f"    got    {fold(line)[:160]}")


def _label_file(name: str) -> Mapping[str, object]:
    path = LABELS / f"{name}.jsonl"
    return DataFile(f"bench/labels/{name}.jsonl", path).described()


if __name__ == "__main__":
    main()
