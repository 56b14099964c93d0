"""Spectrum-based localization: what failing runs cover and passing runs do not is suspicious.

Tarantula: J. A. Jones, M. J. Harrold: "Empirical Evaluation of the Tarantula Automatic
Fault-Localization Technique", ASE 2005, Section 2. Ochiai: R. Abreu, P. Zoeteweij, A. J. C. van
Gemund: "On the Accuracy of Spectrum-based Fault Localization", TAIC PART 2007, Section 2.

There is no report here, so this is no `Technique`: the input is runs, of tests as a rule, each with
the lines that it covered.

>>> runs = [Run("a", False, {"m.py": frozenset({1, 2})}), Run("b", True, {"m.py": frozenset({1})})]
>>> [(item.start, round(item.score, 2)) for item in suspicious_lines(runs)]
[(2, 1.0), (1, 0.71)]
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from epochzero.code import Unit
from epochzero.errors import InputError
from epochzero.locate.index import Floats
from epochzero.locate.model import Item, Reason
from epochzero.number_formats import counted


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program.

    Attributes:
        name: of the test, or another unique identifier.
        passed: whether it passed.
        covered: the lines that it executed, from 1, by path.
    """

    name: str
    passed: bool
    covered: Mapping[str, frozenset[int]]


# -- Formulas ----------------------------------------------------------------------------------

Formula: TypeAlias = Callable[[Floats, Floats, int, int], Floats]
"""Failing and passing runs that cover each line, all failing and all passing runs; suspicions."""


def tarantula(failed: Floats, passed: Floats, all_failed: int, all_passed: int) -> Floats:
    """Jones and Harrold: the share of the failing runs that cover a line, against the same share of
    the passing runs; where nothing passed, whatever fails is as suspicious as can be.

    Args:
        failed: how many failing runs cover each line, (lines,).
        passed: how many passing runs do, (lines,).
        all_failed: how many runs fail.
        all_passed: how many runs pass.

    Returns:
        From 0 to 1, 0 where nothing covers a line, (lines,).
    """
    share_failed = failed / max(all_failed, 1)
    both = share_failed + passed / max(all_passed, 1)
    return np.asarray(share_failed / np.where(both > 0, both, 1), np.float32)


def ochiai(failed: Floats, passed: Floats, all_failed: int, all_passed: int) -> Floats:
    """Abreu et al.: the cosine of the runs that cover a line with those that fail.

    Args:
        failed: how many failing runs cover each line, (lines,).
        passed: how many passing runs do, (lines,).
        all_failed: how many runs fail.
        all_passed: how many runs pass; not used, as in the paper.

    Returns:
        From 0 to 1, 0 where nothing covers a line, (lines,).
    """
    both = np.sqrt(all_failed * (failed + passed))
    return np.asarray(failed / np.where(both > 0, both, 1), np.float32)


OCHIAI = "ochiai"
FORMULAS: Mapping[str, Formula] = MappingProxyType({OCHIAI: ochiai, "tarantula": tarantula})
"""By name. Ochiai did better than Tarantula in the comparison of Abreu et al."""


# -- Rankings ----------------------------------------------------------------------------------


def suspicious_lines(runs: Sequence[Run], formula: Formula = ochiai) -> tuple[Item, ...]:
    """The lines that a failing run covered, the most suspicious first.

    Raises:
        InputError: no run fails.
    """
    failing = [run for run in runs if not run.passed]
    passing = [run for run in runs if run.passed]
    if not failing:
        raise InputError(
            "no run fails: a spectrum requires at least one failing and one passing run"
        )
    failed, passed = _covering(failing), _covering(passing)
    places = sorted(failed)
    scores = formula(
        np.array([failed[place] for place in places], np.float32),
        np.array([passed[place] for place in places], np.float32),
        len(failing),
        len(passing),
    ).tolist()
    found = [
        Item(
            path,
            score,
            start=line,
            end=line,
            reasons=(
                Reason(
                    "coverage",
                    f"covered by {failed[path, line]} of {len(failing)} failing and "
                    f"{passed[path, line]} of {len(passing)} passing runs",
                ),
            ),
        )
        for (path, line), score in zip(places, scores, strict=True)
    ]
    return tuple(sorted(found, key=lambda item: -item.score))


def suspicious_functions(
    runs: Sequence[Run], units: Mapping[str, Sequence[Unit]], formula: Formula = ochiai
) -> tuple[Item, ...]:
    """The functions and classes that a failing run covered, the most suspicious first.

    Each is as suspicious as the most suspicious of its lines; a line belongs to the innermost unit
    around it, and one outside of all units to none.

    Args:
        runs: failing ones among them.
        units: of each file, by the paths of the runs.
        formula: one of `FORMULAS`.

    Raises:
        InputError: no run fails.
    """
    best: dict[tuple[str, str, int], Item] = {}
    for item in suspicious_lines(runs, formula):
        unit = _innermost(units.get(item.path, ()), item.start)
        if unit is not None:
            whole = Item(
                item.path, item.score, unit.qualified, unit.start, unit.end, _of_line(item)
            )
            best.setdefault((item.path, unit.qualified, unit.start), whole)
    return tuple(best.values())


def suspicious_files(runs: Sequence[Run], formula: Formula = ochiai) -> tuple[Item, ...]:
    """The files that a failing run covered, the most suspicious first.

    Each is as suspicious as the most suspicious of its lines.

    Raises:
        InputError: no run fails.
    """
    best: dict[str, Item] = {}
    for item in suspicious_lines(runs, formula):
        best.setdefault(item.path, Item(item.path, item.score, reasons=_of_line(item)))
    return tuple(best.values())


def _of_line(item: Item) -> tuple[Reason, ...]:
    """The reasons of the most suspicious line, which are not true of all that is around it."""
    return tuple(
        Reason(reason.kind, f"line {item.start}, the most suspicious one: {reason.text}")
        for reason in item.reasons
    )


def _covering(runs: Sequence[Run]) -> Counter[tuple[str, int]]:
    """How many runs cover each line."""
    return Counter(
        (path, line) for run in runs for path, lines in run.covered.items() for line in lines
    )


def _innermost(units: Sequence[Unit], line: int) -> Unit | None:
    around = [unit for unit in units if unit.start <= line <= unit.end]
    return min(around, key=lambda unit: unit.end - unit.start, default=None)


# -- coverage.py's report ----------------------------------------------------------------------

_LINE = re.compile(r"[0-9]{1,9}")
_PHASES = ("|setup", "|run", "|teardown")
_HOW = (
    "create it with `pytest --cov --cov-context=test` and `coverage json --show-contexts`, or set "
    "`dynamic_context = test_function` in coverage.py's configuration"
)


def read_coverage(text: str, failed: Collection[str]) -> tuple[Run, ...]:
    """Runs from the JSON report of coverage.py, made with ``--show-contexts``.

    Each context is a run; the phases that pytest-cov distinguishes (setup, run, teardown) are one.
    Lines that are only executed outside of all contexts, as at import, belong to no run.

    Args:
        text: the report.
        failed: the names of the failed tests, as the contexts name them; one that covers nothing
            counts as a run all the same.

    Raises:
        InputError: it is no such report, it has no contexts, or none of the failed tests is in it.
    """
    covered: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path, line, context in _covered(text):
        covered[context][path.replace("\\", "/")].add(line)
    if not covered:
        raise InputError(f"the coverage report has no contexts: {_HOW}")
    names = set(failed)
    if not names & covered.keys():
        raise InputError(
            f"none of {counted(len(names), 'failed test')} is a context of the coverage report; one of its "
            f"{counted(len(covered), 'context')} is {min(covered)!r}"
        )
    return tuple(
        Run(
            name,
            name not in names,
            {path: frozenset(lines) for path, lines in covered.get(name, {}).items()},
        )
        for name in sorted(covered.keys() | names)
    )


def _covered(text: str) -> Iterator[tuple[str, int, str]]:
    """Path, line and run of everything that was executed according to a report."""
    for path, file in _files(text).items():
        contexts = file.get("contexts", {}) if isinstance(file, dict) else None
        if not isinstance(contexts, dict):
            raise InputError(f"the coverage report has no valid entry for {path!r}")
        for line, names in contexts.items():
            if not _LINE.fullmatch(line) or not isinstance(names, list):
                raise InputError(f"the coverage report is damaged at {path!r}, line {line!r}")
            for name in names:
                if isinstance(name, str) and name:
                    yield path, int(line), _run_of(name)


def _files(text: str) -> dict[str, Any]:
    try:
        report = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the coverage report is not JSON: {error}") from error
    files = report.get("files") if isinstance(report, dict) else None
    if not isinstance(files, dict):
        raise InputError(f"not a JSON report of coverage.py: {_HOW}")
    return files


def _run_of(context: str) -> str:
    for phase in _PHASES:
        context = context.removesuffix(phase)
    return context
