"""What watching finds in trainings that run to their end and are worthless, and in healthy ones.

Programs of ``lab/watch``: the 21 bugs of Jahan et al., EMSE 2025, Table 21, rebuilt, with their fixed
twins; mutants, one fault each in a base program that is healthy; healthy trainings. Each runs once under the
watcher; all methods read the same records. A root cause counts as named when the verdict's root is the
word of the truth or one that an expert could name instead; a layer, when it is the one where the fault
sits; a line, when it is the line of the truth. Early is the first share of the iterations after which the
root is right, of records cut there. Beside them `torch.autograd.set_detect_anomaly`, which ends a
training where a backward pass makes NaN, and names an operator: how many faulty and healthy ones it ends.
It is run where a loss was no number; elsewhere there is nothing that it could end.

Held out: the mutants of the bases that ``lab/watch/base/split.toml`` names, by model and data set, the
healthy trainings that ``lab/watch/healthy/split.toml`` names, every second fresh one and those of the
families that ``lab/watch/families/split.toml`` names, with the faults in them, and the bugs, which nobody
looked at while the faults were written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import REPOSITORY, SEED, rate, save

from epochzero.injected.companions import with_companions
from epochzero.run.watch.child.begin import FILE_VARIABLE
from epochzero.run.watch.history import Record, read_records
from epochzero.run.watch.live import WATCH_COMPANIONS
from epochzero.run.watch.model import WatchResult
from epochzero.study.training_faults import NAMES, by_name
from epochzero_models.evaluate.calibration import expected_calibration_error

sys.path.insert(0, str(REPOSITORY))
from lab.watch.cases import (
    FAMILIES,
    FRESH,
    WATCH,
    all_cases,
    family_cases,
    family_programs,
    fresh_cases,
    fresh_programs,
    held_out_bases,
    held_out_families,
    held_out_healthy,
)
from lab.watch.cases import Case as Made

SOURCE = REPOSITORY / "src"
LIMIT_S = 300
CUTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
WANTED = {
    "bugs_named": 16, "mutants_named": 0.75, "mutants_layer": 0.70, "healthy_found": 0.05,
    "early": 0.1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A training.

    Attributes:
        name: identity.
        part: bugs, keras, mutants, healthy (healthy ones, bases and fixed twins), fresh, fresh_healthy, families
            or families_healthy.
        program: its text.
        truth: what is wrong with it; empty where nothing is.
        held_out: whether nobody looked at it.
    """

    name: str
    part: str
    program: str
    truth: Mapping[str, Any] = field(default_factory=dict)
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A case with what a method says of it after each cut of its iterations."""

    case: Case
    verdicts: Mapping[float, WatchResult]

    @property
    def last(self) -> WatchResult:
        return self.verdicts[CUTS[-1]]


def main() -> None:
    """Runs, scores, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="that has torch and the rest")
    parser.add_argument("--records", type=Path, help="folder that keeps records between runs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--open", action="store_true", help="only what is not held out; keeps none")
    parser.add_argument("--misses", action="store_true", help="print them, of the open half")
    parser.add_argument("--methods", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="names with it")
    options = parser.parse_args()
    cases = [
        case
        for case in cases_of_lab()
        if not (options.open and case.held_out)
        and (not options.only or any(text in case.name for text in options.only))
    ]
    with tempfile.TemporaryDirectory(prefix="watch-") as scratch:
        folder = options.records or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = records_of_all(cases, folder, options)
    numbers: dict[str, Any] = {"wanted": WANTED, "failed_to_run": len(cases) - len(found)}
    for name in options.methods:
        method = by_name(name)
        seen = [Seen(case, _verdicts(records, method)) for case, records in found]
        numbers[name] = _scored(seen)
        if name == "epochzero":
            numbers[name]["calibration"] = _calibrated(seen)
        for part, of_part in numbers[name].items():
            print(name, part, json.dumps(of_part))
        if options.misses and name == "epochzero":
            _print_misses(seen)
    if not options.open and not options.only:
        numbers["detect_anomaly"] = _anomalies(found, options.python)
        print("detect_anomaly", numbers["detect_anomaly"])
        save("watch", numbers, data=[{"name": "lab/watch", "programs": len(cases)}])


def cases_of_lab() -> Iterator[Case]:
    """All trainings of the lab."""
    held = held_out_bases()
    for made in all_cases():
        is_mutant = made.collection == "mutants"
        out = made.about["base"] in held if is_mutant else True
        yield Case(made.id, made.collection, made.faulty, made.about, out)
        if not is_mutant:
            yield Case(f"{made.id}/fixed", "healthy", made.healthy, held_out=True)
    for path in sorted((WATCH / "base").glob("*.py")):
        yield Case(f"base/{path.stem}", "healthy", path.read_text(), held_out=path.stem in held)
    later = held_out_healthy()
    for path in sorted((WATCH / "healthy").glob("*.py")):
        yield Case(f"healthy/{path.stem}", "healthy", path.read_text(), held_out=path.stem in later)
    # Every second fresh one.
    later = frozenset(sorted(fresh_programs())[1::2])
    yield from _edited_cases("fresh", FRESH, fresh_programs(), fresh_cases(), later)
    families = family_programs(), family_cases(), held_out_families()
    yield from _edited_cases("families", FAMILIES, *families)


def _edited_cases(
    part: str, folder: Path, names: Iterable[str], faulty: Iterable[Made], later: frozenset[str]
) -> Iterator[Case]:
    """Healthy trainings and the faults in them; of those that are held out only looked at in the end."""
    for name in names:
        program = (folder / "healthy" / f"{name}.py").read_text(encoding="utf-8")
        yield Case(f"{part}/{name}", f"{part}_healthy", program, held_out=name in later)
    for made in faulty:
        yield Case(made.id, part, made.faulty, made.about, made.about["base"] in later)


def records_of_all(
    cases: Sequence[Case], folder: Path, options: argparse.Namespace
) -> list[tuple[Case, list[Record]]]:
    """The cases with their records, of those that ran."""
    began = time.monotonic()
    found = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda case: _records(case, folder, options.python), cases)
        for number, (case, records) in enumerate(zip(cases, runs, strict=True), 1):
            if number % 20 == 0:
                print(
                    f"{number} of {len(cases)}, {time.monotonic() - began:.0f} s", file=sys.stderr
                )
            if records is not None:
                found.append((case, records))
    return found


def _records(case: Case, folder: Path, python: str) -> list[Record] | None:
    """What the watcher wrote; kept for the same program."""
    digest = hashlib.sha256(case.program.encode()).hexdigest()[:12]
    kept = folder / f"{case.name.replace('/', '.')}.{digest}.jsonl"
    program = folder / f"{digest}.py"
    if not kept.exists():
        program.write_text(case.program)
        begun = kept.with_suffix(".begun")
        begun.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as work:
            environment = with_companions(
                os.environ
                | {
                    "PYTHONPATH": os.pathsep.join((str(SOURCE), os.environ.get("PYTHONPATH", ""))),
                    FILE_VARIABLE: str(begun),
                },
                WATCH_COMPANIONS,
                Path(work),
            )
            try:
                done = subprocess.run(
                    [python, str(program)], cwd=work, env=environment, timeout=LIMIT_S,
                    capture_output=True, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                print(f"{case.name}: takes longer than {LIMIT_S} s", file=sys.stderr)
                return None
        if done.returncode or not begun.exists():
            last = done.stderr.decode()[-300:]
            print(f"{case.name}: ended with {done.returncode}: {last}", file=sys.stderr)
            return None
        begun.rename(kept)
    return [json.loads(line) for line in kept.read_bytes().splitlines()]


def _verdicts(records: Sequence[Record], method: Any) -> dict[float, WatchResult]:
    total = max((int(r["iteration"]) + 1 for r in records if "iteration" in r), default=1)
    return {
        cut: method(read_records(_until(records, cut * total) if cut < 1 else records))
        for cut in CUTS
    }


def _until(records: Iterable[Record], iteration: float) -> Iterator[Record]:
    """The records that were there when an iteration began."""
    for record in records:
        if record["kind"] == "losses":
            kept = [loss for loss in record["losses"] if loss[0] < iteration]
            yield {**record, "losses": kept}
        elif record["kind"] != "ended" and record.get("iteration", 0) < iteration:
            yield record


def _anomalies(
    found: Sequence[tuple[Case, list[Record]]], python: str
) -> dict[str, dict[str, int]]:
    """Of each part, how many trainings there are, and how many the detection of anomalies ends."""
    code = (
        "import runpy, sys, torch; torch.autograd.set_detect_anomaly(True);"
        "runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    numbers: dict[str, dict[str, int]] = {}
    for case, records in found:
        of_part = numbers.setdefault(case.part, {"cases": 0, "ended": 0})
        of_part["cases"] += 1
        if not any(record["kind"] == "nonfinite" for record in records):
            continue
        with tempfile.TemporaryDirectory() as work:
            program = Path(work) / "train.py"
            program.write_text(case.program)
            done = subprocess.run(
                [python, "-c", code, str(program)], cwd=work, capture_output=True, check=False
            )
        of_part["ended"] += b"returned nan values" in done.stderr
    return numbers


def _scored(seen: Sequence[Seen]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    failed = [
        (one.case.name, watched.failed)
        for one in seen
        for watched in one.verdicts.values()
        if watched.failed
    ]
    assert not failed, failed[0]
    for part, score in PARTS.items():
        of_part = [one for one in seen if one.case.part == part]
        numbers[part] = score(of_part)
        held_out = [one for one in of_part if one.case.held_out]
        if 0 < len(held_out) < len(of_part):
            numbers[f"{part}/held_out"] = score(held_out)
    return numbers


def _calibrated(seen: Sequence[Seen]) -> dict[str, Any]:
    """How far the confidence of roots lies from the share of them that is right; of healthy ones none is."""
    numbers = {}
    for name, held_out in (("open", False), ("held_out", True)):
        named = [
            (root.confidence, bool(one.case.truth) and is_named(one.case, root.word))
            for one in seen
            if one.case.held_out == held_out and (root := one.last.root) is not None
        ]
        if named:
            confidence, right = np.array(named, dtype=float).T
            numbers[name] = {
                "roots": len(named),
                "right": round(float(right.mean()), 4),
                "confidence": round(float(confidence.mean()), 4),
                "expected_calibration_error": asdict(
                    expected_calibration_error(confidence, right, SEED)
                ),
            }
    return numbers


def _healthy(seen: Sequence[Seen]) -> dict[str, Any]:
    found = sum(one.last.root is not None for one in seen)
    ever = sum(any(w.root is not None for w in one.verdicts.values()) for one in seen)
    return {
        "cases": len(seen), "found": found, "share": rate(found, len(seen)),
        "found_on_the_way": ever,
    }  # fmt: skip


def _faulty(seen: Sequence[Seen]) -> dict[str, Any]:
    with_layer = [one for one in seen if one.case.truth["layer"]]
    named = [one for one in seen if _is_named(one.case, one.last)]
    early = [next(cut for cut in CUTS if _is_named(one.case, one.verdicts[cut])) for one in named]
    layers = sum(_has_layer(one) for one in with_layer)
    lines = sum(_has_line(one) for one in seen)
    return {
        "cases": len(seen),
        "named": len(named),
        "named_share": rate(len(named), len(seen)),
        "anything_found": sum(one.last.root is not None for one in seen),
        "with_layer": len(with_layer),
        "layer": layers,
        "layer_share": rate(layers, len(with_layer)),
        "line_share": rate(lines, len(seen)),
        "early_median": statistics.median(early) if early else None,
        "by_fault": dict(Counter(one.case.truth["fault"] for one in named)),
    }


def is_named(case: Case, word: str) -> bool:
    """Whether a word names what is wrong with a faulty training."""
    return word in {case.truth["fault"], *case.truth.get("also", ())}


def _is_named(case: Case, watched: WatchResult) -> bool:
    return watched.root is not None and is_named(case, watched.root.word)


def _has_layer(one: Seen) -> bool:
    """The layer of the truth, or one within it where that is a block."""
    truth = (one.case.truth["layer"], *one.case.truth.get("also_layers", ()))
    root = one.last.root
    return root is not None and any(f"{root.layer}.".startswith(f"{path}.") for path in truth)


def _has_line(one: Seen) -> bool:
    root = one.last.root
    if root is None or root.place is None:
        return False
    lines = one.case.program.splitlines()
    text = lines[root.place.line - 1] if root.place.line <= len(lines) else ""
    wanted = one.case.truth["line"]
    first = wanted.splitlines()[0].strip()
    return first in text


def _print_misses(seen: Sequence[Seen]) -> None:
    for one in seen:
        case, root = one.case, one.last.root
        if case.held_out:
            continue
        said = f"{root.word} ({root.layer}, {root.confidence:.2f}): {root.text}" if root else "-"
        if case.truth and not _is_named(case, one.last):
            print(f"{case.name}: is {case.truth['fault']} {case.truth['layer']}; said {said}")
            for other in one.last.others[:4]:
                print(f"      also {other.word} ({other.layer}, {other.confidence:.2f})")
        elif case.truth.get("layer") and not _has_layer(one):
            print(f"{case.name}: layer is {case.truth['layer']}; said {said}")
        elif not case.truth and root:
            print(f"{case.name}: is healthy; said {said}")


PARTS = {
    "bugs": _faulty, "keras": _faulty, "mutants": _faulty, "fresh": _faulty,
    "families": _faulty, "healthy": _healthy, "fresh_healthy": _healthy,
    "families_healthy": _healthy,
}  # fmt: skip


if __name__ == "__main__":
    main()
