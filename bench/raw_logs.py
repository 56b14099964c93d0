"""What is found in raw logs of real jobs: how they ended, first cause, rank, retry, calibration.

The logs are those of ``labels/raw_logs.jsonl``; ``raw_log_texts.py`` rebuilds them. Half of the
repositories was held out until its first evaluation. The options ``--blind...`` measure the logs of
``labels/raw_logs_blind*.jsonl``, which were labelled before any diagnosis of them. Each evaluation
of a part other than the open half adds a line to ``labels/raw_logs_looks.jsonl``; the first one of
a blind part stays in the result file, and what its categories rested on is stored in
``labels/raw_logs_first_look.jsonl``, from which confidence is learned.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from common import DataFile, commit, fold, jsonl, line_hash, rate, save
from raw_log_texts import (
    HALVES,
    LABELS,
    NUMBERED,
    SETS,
    RawLog,
    all_logs,
    cached,
    default_cache,
)
from rivals import Answer, Rival, answer_of
from rivals.choice import add_options, chosen, not_run
from scoring import Gold, Scored, accuracy, calibration, macro_f1, with_interval

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.confidence import confidence_features
from epochzero.logs.source import Log, rank_of
from epochzero.reports.statistics import confusion, kappa

LOOKS = LABELS.with_name("raw_logs_looks.jsonl")
FIRST_LOOK = LABELS.with_name("raw_logs_first_look.jsonl")
FIELDS = ("root_cause", "phase", "retry")
BLIND = ("blind", *(f"blind_{number}_{half}" for number in NUMBERED for half in HALVES))
PARTS = (*HALVES, *BLIND)
DEVELOPMENT = tuple(
    part for part in PARTS if part not in {f"blind_{number}_held_out" for number in NUMBERED[1:]}
)
"""Parts whose single logs may be inspected."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a tool reports of one log.

    Attributes:
        log: the log with its labels.
        answer: in the form that all tools share.
        outcome: "failed", "no_failure", or another word of the tool for an undecided log.
        fields: root cause, phase and retry; empty if the tool has none.
        confidence: in the category, from 0 to 1.
        features: what the confidence depends on.
    """

    log: RawLog
    answer: Answer
    outcome: str
    fields: Mapping[str, str]
    confidence: float = 0.0
    features: frozenset[str] = frozenset()

    @property
    def root_strict(self) -> bool:
        """Whether it names the labelled line, or a line with the same text."""
        return self._names(self.log.root)

    @property
    def root_lenient(self) -> bool:
        """Whether it names the labelled line or one that is accepted too."""
        return self.root_strict or any(map(self._names, self.log.root_also))

    def _names(self, root: Any) -> bool:
        same_line = self.answer.line == root.line
        return same_line or (bool(self.answer.text) and line_hash(self.answer.text) in root.hashes)

    @property
    def scored(self) -> Scored:
        """In the form of the other benchmarks of diagnosis."""
        gold = Gold(
            id=self.log.id,
            project=self.log.repository,
            log="",
            category=self.log.category,
            also=self.log.also,
            root_cause=self.log.root_cause,
            phase=self.log.phase,
            retry=self.log.retry,
        )
        return Scored(gold, self.answer.category, confidence=self.confidence)


Tool = Callable[[RawLog, Log], Found]


def main() -> int:
    """Measures, prints, and stores the result; returns 1 if texts are missing."""
    options = _parser().parse_args()
    half: str = options.half
    logs = [log for log in all_logs() if log.half == half]
    if missing := [log for log in logs if not cached(log, options.cache).is_file()]:
        print(
            f"{len(missing)} of {len(logs)} logs are not in {options.cache}. Rebuild them with "
            "bench/raw_log_texts.py.",
            file=sys.stderr,
        )
        return 1
    if half != "open":
        add_look(LOOKS, half)
    rivals = chosen(options)
    diagnoser = Diagnoser(redact=False)
    tools: dict[str, Tool] = {"epochzero": partial(_diagnosed, diagnoser)}
    tools |= {rival.name: partial(_answered, rival) for rival in rivals}
    measured: dict[str, Any] = {"logs": len(logs)}
    numbers = _earlier()
    for name, tool in tools.items():
        found = [tool(log, _log(log, options.cache)) for log in logs]
        measured[name] = measure(found)
        if name == "epochzero" and half in BLIND and f"{half}_first_look" not in numbers:
            add_first_look(FIRST_LOOK, found)
        if name == "epochzero" and options.misses and half in DEVELOPMENT:
            _print_misses(found)
    _print_table(measured)
    versions = {rival.name: rival.version for rival in rivals} | not_run(options)
    data = [DataFile(f"bench/labels/{path.name}", path).described() for path in SETS]
    numbers[half] = measured
    if half in BLIND:
        numbers.setdefault(f"{half}_first_look", measured)
    counts = Counter(look.get("half", "held_out") for look in looks(LOOKS))
    numbers["looks"] = {part: counts[part] for part in PARTS[1:]}
    numbers["agreement"] = agreement(list(jsonl(LABELS)))
    for path in SETS[2:]:
        read_twice = [record for record in jsonl(path) if record.get("readings") == 2]
        numbers[path.stem.replace("raw_logs", "agreement")] = agreement(read_twice)
    save("raw_logs", numbers, data=data, rivals=versions)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    group = parser.add_mutually_exclusive_group()
    for half in PARTS[1:]:
        group.add_argument(
            f"--{half.replace('_', '-')}",
            action="store_const",
            const=half,
            default="open",
            dest="half",
            help=f"measure the {half.replace('_', '-')} logs, which counts as a look",
        )
    parser.add_argument(
        "--misses", action="store_true", help="print misses of logs that may be inspected"
    )
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), metavar="DIR", help="the rebuilt logs"
    )
    add_options(parser)
    return parser


def agreement(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How far the two readings of the labels agree: by field, the share and Cohen's kappa."""
    numbers: dict[str, Any] = {}
    for field in ("ended", "category", *FIELDS):
        first = [_reading(record, "first", field) for record in records]
        second = [_reading(record, "second", field) for record in records]
        pairs = [(one, other) for one, other in zip(first, second, strict=True) if one and other]
        _, matrix = confusion([one for one, _ in pairs], [other for _, other in pairs])
        share = accuracy(one == other for one, other in pairs)
        numbers[field] = {"cases": len(pairs), "share": share, "kappa": kappa(matrix)}
    return numbers


def _reading(record: Mapping[str, Any], reading: str, field: str) -> str:
    """The value of a field in one of the readings, which are stored where they differ."""
    return str(record.get(reading, {}).get(field) or record.get(field, ""))


def looks(path: Path) -> list[dict[str, Any]]:
    """The evaluations so far of all parts but the open half."""
    return list(jsonl(path)) if path.is_file() else []


def add_look(path: Path, half: str = "held_out") -> None:
    """Records an evaluation of any part but the open half, before anything is measured."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    look = {"date": now, "commit": commit(), "half": half}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(look) + "\n")


def add_first_look(path: Path, found: Sequence[Found]) -> None:
    """Stores whether the categories of failures were right at their first evaluation, and what they rested on."""
    with path.open("a", encoding="utf-8") as file:
        for each in found:
            if each.log.ended == "failed" and each.outcome == "failed":
                right, features = each.scored.exact, sorted(each.features)
                row = {
                    "id": each.log.id,
                    "half": each.log.half,
                    "right": right,
                    "features": features,
                }
                file.write(json.dumps(row) + "\n")


def _earlier() -> dict[str, Any]:
    """The parts as they were last measured, and the first evaluations of the blind ones."""
    path = LABELS.parent.parent / "results" / "raw_logs.json"
    if not path.is_file():
        return {}
    numbers = json.loads(path.read_text(encoding="utf-8"))["numbers"]
    kept = (*PARTS, *(f"{part}_first_look" for part in BLIND))
    return {part: numbers[part] for part in kept if part in numbers}


def _log(log: RawLog, cache: Path) -> Log:
    """The text under its own name, which can contain the rank, as for a file that a user passes."""
    name = Path(log.path).name
    return Log(name, rank=rank_of(name), text=cached(log, cache).read_bytes())


def _diagnosed(diagnoser: Diagnoser, log: RawLog, text: Log) -> Found:
    found = diagnoser.diagnose([text])
    fields = {field: str(getattr(found, field)) for field in FIELDS}
    features = confidence_features(found) if found.outcome == "failed" else frozenset()
    return Found(log, answer_of(found), found.outcome, fields, found.confidence, features)


def _answered(rival: Rival, log: RawLog, text: Log) -> Found:
    answer = rival.answer([text])
    return Found(log, answer, "failed" if answer.failed else "no_failure", {})


def measure(found: Sequence[Found]) -> dict[str, Any]:
    """All measures of one tool."""
    failed = [each for each in found if each.log.ended == "failed"]
    well = [each for each in found if each.log.ended == "well"]
    cut = [each for each in found if each.log.ended == "cut"]
    ranked = [each for each in failed if each.log.rank is not None]
    numbers: dict[str, Any] = {
        "failed": len(failed),
        "missed": _count(failed, lambda each: each.outcome == "no_failure"),
        "well": len(well),
        "false_alarms": _count(well, lambda each: each.outcome == "failed"),
        "not_called_good": _count(well, lambda each: each.outcome != "no_failure"),
        "cut": len(cut),
        "cut_called_failed": _count(cut, lambda each: each.outcome == "failed"),
        "root_line": _share(failed, lambda each: each.root_strict),
        "root_line_or_also": _share(failed, lambda each: each.root_lenient),
        "rank": _share(ranked, lambda each: each.answer.rank == each.log.rank),
    }
    scored = [each.scored for each in failed]
    if any(each.category for each in scored):
        numbers["category"] = with_interval(scored, lambda s: accuracy(each.exact for each in s))
        numbers["category_or_also"] = with_interval(
            scored, lambda s: accuracy(each.accepted for each in s)
        )
        numbers["macro_f1"] = macro_f1((each.gold.category, each.category) for each in scored)
        numbers["macro_f1_or_also"] = macro_f1(
            (each.gold.category, each.counted) for each in scored
        )
    if any(each.fields for each in failed):
        numbers |= {field: _field(failed, field) for field in FIELDS}
        numbers["calibration"] = calibration(scored)
    return numbers


def _count(found: Sequence[Found], test: Callable[[Found], bool]) -> int:
    return sum(map(test, found))


def _share(found: Sequence[Found], test: Callable[[Found], bool]) -> Mapping[str, object]:
    right = _count(found, test)
    return {"right": right, "of": len(found), "share": rate(right, len(found))}


def _field(failed: Sequence[Found], field: str) -> Mapping[str, object]:
    """How often a field is right where its label is known."""
    known = [each for each in failed if getattr(each.log, field) != "unknown"]
    return _share(known, lambda each: each.fields[field] == getattr(each.log, field))


def _print_table(measured: Mapping[str, Any]) -> None:
    shares = ("root_line", "root_line_or_also", "rank", *FIELDS)
    for tool, numbers in measured.items():
        if tool == "logs":
            continue
        print(f"{tool}: {numbers['missed']} of {numbers['failed']} failures missed, ", end="")
        print(f"{numbers['false_alarms']} false alarms in {numbers['well']} good logs, ", end="")
        print(f"{numbers['cut_called_failed']} of {numbers['cut']} cut logs called failed")
        for name in shares:
            if name in numbers:
                print(f"  {name:20}{numbers[name]['right']:>4} of {numbers[name]['of']}")
        for name in ("category", "category_or_also"):
            if name in numbers:
                print(f"  {name:20}{numbers[name]['value']}")
        if "calibration" in numbers:
            print(f"  {'calibration error':20}{numbers['calibration']['expected_error']}")


def _print_misses(found: Sequence[Found]) -> None:
    for each in found:
        log, answer = each.log, each.answer
        if log.ended != "failed":
            if each.outcome == "failed":
                print(f"{log.id} ended {log.ended}, ALARM {answer.category} {answer.line}")
                print(f"    got    {fold(answer.text)[:160]}")
            continue
        wrong = [name for name in FIELDS if _differs(each, name)]
        wrong += [] if each.scored.accepted else ["category"]
        wrong += [] if each.root_lenient else ["root"]
        wrong += ["rank"] if log.rank is not None and answer.rank != log.rank else []
        if wrong:
            assert log.root is not None
            print(f"{log.id} {each.outcome} {' '.join(wrong)}")
            print(f"    wanted {log.root.line} rank {log.rank} {log.category} ", end="")
            print(f"{log.root_cause} {log.phase} {log.retry}")
            print(f"    got    {answer.line} rank {answer.rank} {answer.category} ", end="")
            print(" ".join(each.fields.values()))
            print(f"    got    {fold(answer.text)[:160]}")


def _differs(found: Found, field: str) -> bool:
    label = getattr(found.log, field)
    return bool(label != "unknown" and found.fields[field] != label)


if __name__ == "__main__":
    sys.exit(main())
