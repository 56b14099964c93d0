"""What each group of features is worth to the learned ranking, and which bugs it loses.

Groups are the modules of ``src/epochzero/locate/features``. Each is left out, and each is taken
alone, with the same folds of whole projects as in ``bench/localization.py``, from what that kept.
The files that the trees see are chosen by the hand-weighted sum even where its group is left out.

    python bench/localization_ablation.py --repos DIR
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np
from common import rate, save
from learning_to_rank import cross_validated
from localization import REPORTED, examples_of, options_of
from localization_data import Measured
from localization_tables import against, show, table

from epochzero.code import Bag
from epochzero.code.parse import parse
from epochzero.code.words import words
from epochzero.locate.corpus import Corpus
from epochzero.locate.features import GROUPS, features_of
from epochzero.locate.features.context import Context
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.study.localization.bugs import bugs_of
from epochzero.study.localization.ranks import Ranked, ranked

LOST_BELOW = 5
"""A bug is lost when no file of its fix is among so many."""
FULL = "all groups"
GUESS = "first guess"
"""The hand-weighted sum: it is made of several groups, so that it counts as one of its own."""


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser, "localization_ablation")
    options.methods = ()
    measured = examples_of(options)
    asked = [m for m in measured if m.example.project.lower() in REPORTED or options.all]
    names = measured[0].example.names
    variants = {FULL: names, **_variants(names)}
    ranks = {}
    for name, columns in variants.items():
        ranks[name] = _ranks(measured, asked, columns)
        show("all", {name: table(ranks[name])})
        sys.stdout.flush()
    reports = {bug.report.id: bug.report for bug in bugs_of(options.data.records)}
    projects = [m.example.project for m in asked]
    save(
        options.out,
        {
            "bugs": len(asked),
            "columns": {name: len(columns) for name, columns in variants.items()},
            "tables": {name: table(found) for name, found in ranks.items()},
            "all_groups_against": against(FULL, ranks, projects),
            "lost": _lost(asked, ranks[FULL], reports),
            "lost_precision": _lost_precision(ranks[FULL]),
        },
        data=[options.data.described()],
    )


# -- Groups --------------------------------------------------------------------------------------


def _variants(names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The columns of each run."""
    of = _groups(names)
    groups = (*GROUPS, GUESS)
    return {
        **{f"without {g}": tuple(n for n in names if of[n] != g) for g in groups},
        **{f"{g} alone": tuple(n for n in names if of[n] == g) for g in groups},
    }


def _groups(names: Sequence[str]) -> Mapping[str, str]:
    """The group of each column; ranks and standard scores belong to what they are made of."""
    corpus = Corpus(["a.py", "b.py"], [parse(b"a = 1\n", "a.py"), parse(b"b = 1\n", "b.py")])
    query = query_of(Report("a", "b"))
    context = Context(query, corpus, 0.0)
    own = {column: name for name, group in GROUPS.items() for column in group(context)}
    own["guess"] = GUESS
    if set(features_of(query, corpus)[0]) != set(names):
        sys.exit("the features that are kept are not those of this code; remove them from --work")
    return {name: own.get(name) or own[name.partition("_")[2]] for name in names}


def _ranks(
    measured: Sequence[Measured], asked: Sequence[Measured], columns: Sequence[str]
) -> list[Ranked]:
    examples = [m.example for m in asked]
    found = cross_validated([m.example for m in measured], examples, columns)
    scores = {example.bug: values for example, values in found}
    return [ranked(scores[example.bug], example.wanted) for example in examples]


# -- Bugs that are lost --------------------------------------------------------------------------


def _lost(
    asked: Sequence[Measured], ranks: Sequence[Ranked], reports: Mapping[str, Report]
) -> Mapping[str, object]:
    """How common each attribute is among all bugs and among the lost, and how often it is lost."""
    attributes = [set(_attributes(m, reports[m.example.bug])) for m in asked]
    lost = [rank.first > LOST_BELOW for rank in ranks]
    rows = {}
    for name in sorted(set().union(*attributes)):
        has = [name in own for own in attributes]
        both = sum(h and b for h, b in zip(has, lost, strict=True))
        rows[name] = {
            "bugs": sum(has),
            "lost": both,
            "share_of_all": rate(sum(has), len(asked)),
            "share_of_lost": rate(both, sum(lost)),
            "lost_of_these": rate(both, sum(has)),
        }
        print(f"{name:44s}" + "  ".join(f"{key} {value}" for key, value in rows[name].items()))
    return {"below_rank": LOST_BELOW, "bugs": sum(lost), "attributes": rows}


def _lost_precision(ranks: Sequence[Ranked]) -> Mapping[str, float | None]:
    """Where the average precision that is missing to 1 is lost, as shares."""
    first = np.array([rank.first for rank in ranks])
    missing = np.array([1 - rank.precision for rank in ranks])
    parts = {
        "first hit right, others of the fix below": first == 1,
        "first hit at 2 to 5": (first > 1) & (first <= 5),
        "first hit at 6 to 10": (first > 5) & (first <= 10),
        "first hit beyond 10": first > 10,
    }
    return {
        name: rate(float(missing[rows].sum()), float(missing.sum())) for name, rows in parts.items()
    }


_OTHER_SCRIPT = re.compile(r"[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_SIDE: Mapping[str, Callable[[PurePosixPath], bool]] = {
    "__init__": lambda path: path.name == "__init__.py",
    "setup or version": lambda path: path.stem in ("setup", "version", "__version__", "__about__"),
    "example or script": lambda path: bool(
        {"examples", "example", "scripts", "tutorials", "docs", "benchmarks", "tools"}
        & {part.lower() for part in path.parts[:-1]}
    ),
    "configuration": lambda path: bool(re.search(r"conf|settings|options|constants", path.stem)),
}


def _attributes(measured: Measured, report: Report) -> Iterator[str]:
    """What can be said of a bug by looking at its report, its tree and the files wanted."""
    query = query_of(report)
    yield "names a changed file" if measured.localized else "names no changed file"
    yield f"files wanted: {_range(len(measured.files), (1, 5))}"
    yield f"files searched: {_range(len(measured.example.table), (100, 300))}"
    yield f"words of the report: {_range(Bag.of(words(query.texts['all'])).total, (30, 100, 300))}"
    yield f"report's words in a wanted file, %: {_range(round(100 * measured.shared), (20, 40, 60))}"
    if measured.knows_fix:
        yield "reporter knows a fix"
    yield "with a traceback" if query.frames else "without a traceback"
    yield "with code" if query.texts["code"].strip() else "without code"
    if len(_OTHER_SCRIPT.findall(query.texts["all"])) > 10:
        yield "not in English only"
    sides = [_side(PurePosixPath(path)) for path in measured.files]
    yield from (f"wants {side}" for side in set(sides) if side)
    if all(sides):
        yield "wants side files only"
    if measured.kind:
        yield f"type {measured.kind}"
    if measured.extrinsic is not None:
        yield "extrinsic" if measured.extrinsic else "intrinsic"


def _side(path: PurePosixPath) -> str:
    return next((side for side, fits in _SIDE.items() if fits(path)), "")


def _range(value: int, bounds: Sequence[int]) -> str:
    """The range between bounds in which a number lies, each bound being in the lower one."""
    below = [bound for bound in bounds if bound < value]
    above = [bound for bound in bounds if bound >= value]
    if not above:
        return f"over {bounds[-1]}"
    return f"{below[-1] + 1} to {above[0]}" if below else f"up to {above[0]}"


if __name__ == "__main__":
    main()
