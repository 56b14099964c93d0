"""Bugs with the features of their functions, kept by project, and what is learned from them; shared by
the benchmark of functions and the trainer.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import lightgbm
import numpy as np
import numpy.typing as npt
from common import SEED
from learning_to_rank import SETTINGS, folds, trees_of
from learning_to_rank import fit as fit_files
from localization import Options, examples_of

from epochzero.code import Cache, Repository
from epochzero.locate.features.context import ALL, Context
from epochzero.locate.functions.context import FunctionContext
from epochzero.locate.functions.features import Candidates, features_of
from epochzero.locate.functions.ranker import chosen
from epochzero.locate.functions.table import FunctionTable
from epochzero.locate.mentions import mentions
from epochzero.locate.query import query_of
from epochzero.locate.ranker import Trees, ranked
from epochzero.locate.techniques.combined import Combined
from epochzero.study.localization.bugs import Bug, BugCase, bugs_of, by_project, cases_of, clones

__all__ = [
    "FUNCTION_SETTINGS",
    "ROUNDS",
    "FunctionExample",
    "cross_validated",
    "fit",
    "function_examples",
]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

FORMAT = 1
"""Goes up when what is kept of a project changes."""
FUNCTION_SETTINGS = SETTINGS | {
    "learning_rate": 0.05,
    "min_data_in_leaf": 60,
    "lambdarank_truncation_level": 15,
}
ROUNDS = 150
"""Chosen on the development half of the projects (``split.py``)."""
LIKELY, OTHERS = 100, 20
"""Of each bug so many of the likeliest functions and so many others are learned from."""
FILE_FOLDS = 5
"""Fewer than where files are reported: each bug needs scores here, also those only learned from."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionExample:
    """A bug's functions.

    Attributes:
        bug: its id.
        project: ``owner+name``.
        localized: the report names a file that the fix changed.
        names: of the columns.
        table: of the functions that the learned ranking sees, (candidates, columns).
        wanted: which of them the fix changed, (candidates,).
        outside: ranks of those that it changed beyond the candidates, from 1.
        ranks: of all functions that it changed, by each method that is not learned: sorted.
        seconds: for the features.
    """

    bug: str
    project: str
    localized: bool
    names: tuple[str, ...]
    table: Floats
    wanted: npt.NDArray[np.bool_]
    outside: Ints
    ranks: Mapping[str, Ints]
    seconds: float


# -- Bugs ----------------------------------------------------------------------------------------


def function_examples(options: Options) -> list[FunctionExample]:
    """The bugs whose fix changed functions, computed or read from what was kept."""
    files = _files(options)
    found = clones(options.repos)
    jobs = [
        (project, bugs, found[project.lower()], options.work, files)
        for project, bugs in by_project(bugs_of(options.data.records)).items()
        if project.lower() in found
    ]
    jobs.sort(key=lambda job: -len(job[1]))
    done: list[FunctionExample] = []
    with Pool(len(os.sched_getaffinity(0))) as pool:
        for number, of_project in enumerate(pool.imap_unordered(_project, jobs), 1):
            done += of_project
            print(f"{number}/{len(jobs)} projects", file=sys.stderr, flush=True)
    return sorted(done, key=lambda example: example.bug)


_Files = Mapping[str, tuple[Floats, bool]]


def _files(options: Options) -> _Files:
    """By bug the scores of files, from models that never saw a bug of the same project, and whether
    the report names a file that the fix changed.
    """
    kept = options.work / f"files.{FORMAT}.pickle"
    if kept.exists():
        known: _Files = pickle.loads(kept.read_bytes())
        return known
    measured = examples_of(options)
    examples = [each.example for each in measured]
    localized = {each.example.bug: each.localized for each in measured}
    of = folds([example.project for example in examples], FILE_FOLDS)
    found = {}
    for fold in range(FILE_FOLDS):
        model = fit_files([e for e in examples if of[e.project] != fold])
        for example in examples:
            if of[example.project] == fold:
                scores = ranked(model, example.names, example.table)
                found[example.bug] = (scores, localized[example.bug])
    kept.write_bytes(pickle.dumps(found))
    return found


_Job = tuple[str, list[Bug], Path, Path, _Files]


def _project(job: _Job) -> list[FunctionExample]:
    """The bugs of one project."""
    project, bugs, clone, work, files = job
    kept = work / f"{project}.functions.{FORMAT}.pickle"
    if kept.exists():
        known: list[FunctionExample] = pickle.loads(kept.read_bytes())
        return known
    found = []
    for case in cases_of(bugs, Repository(clone), Cache(work / "cache" / project)):
        if isinstance(case, BugCase) and case.bug.report.id in files:
            bug = case.bug.report.id
            table = FunctionTable(case.corpus)
            if wanted := _wanted(case, table):
                found.append(_example(case, table, wanted, *files[bug]))
    partial = kept.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(found))
    partial.rename(kept)
    return found


def _example(
    case: BugCase, table: FunctionTable, wanted: Sequence[int], learned: Floats, localized: bool
) -> FunctionExample:
    query, corpus = query_of(case.bug.report), case.corpus
    mentioned = mentions(query, corpus)
    combined = Combined().scores(query, corpus)
    units = Context(query, corpus, 0.0).unit_scores[:, ALL]
    first = FunctionContext(table, query, corpus, combined, mentioned)
    context = FunctionContext(table, query, corpus, learned, mentioned)
    start = time.perf_counter()
    rows = chosen(context.guess)
    names, features = features_of(Candidates(context, rows))
    taken = time.perf_counter() - start
    ranks = _ranks(context.guess, wanted)
    return FunctionExample(
        case.bug.report.id,
        case.bug.project,
        localized,
        names,
        features,
        np.isin(rows, wanted),
        ranks[ranks > len(rows)],
        {
            "bm25 over bodies": _ranks(units[table.number >= 0], wanted),
            "guess, combined files": _ranks(first.guess, wanted),
            "guess, learned files": ranks,
        },
        taken,
    )


def _wanted(case: BugCase, table: FunctionTable) -> list[int]:
    """The rows of the functions that the fix changed."""
    found = set()
    for file in case.bug.raw["fix"]["files"]:
        document = case.corpus.number.get(str(file["old"]).replace("\\", "/"))
        if document is None:
            continue
        for method in file["methods"]:
            name = method["name"].rpartition(".")[2]
            same = [row for row in table.of_file(document) if table.units[row].name == name]
            if same:
                found.add(min(same, key=lambda row: abs(table.units[row].start - method["start"])))
    return sorted(found)


def _ranks(scores: Floats, wanted: Sequence[int]) -> Ints:
    """The ranks of the functions wanted, from 1: sorted."""
    order = np.argsort(-scores, kind="stable")
    return np.flatnonzero(np.isin(order, wanted)) + 1


# -- Learning ------------------------------------------------------------------------------------


def fit(examples: Iterable[FunctionExample]) -> Trees:
    """The trees learned from bugs of which a candidate is wanted."""
    draw = np.random.default_rng(SEED)
    useful = [example for example in examples if example.wanted.any()]
    rows = [_rows(example, draw) for example in useful]
    pairs = list(zip(useful, rows, strict=True))
    data = lightgbm.Dataset(
        np.concatenate([example.table[own] for example, own in pairs]),
        np.concatenate([example.wanted[own] for example, own in pairs]).astype(np.int8),
        group=list(map(len, rows)),
    )
    model = lightgbm.train(FUNCTION_SETTINGS | {"seed": SEED}, data, ROUNDS)
    return trees_of(useful[0].names, model)


def _rows(example: FunctionExample, draw: np.random.Generator) -> Ints:
    """The candidates that are learned from: the likeliest, what is wanted, and some others."""
    order = np.argsort(-example.table[:, example.names.index("guess")], kind="stable")
    taken = example.wanted.copy()
    taken[order[:LIKELY]] = True
    others = np.flatnonzero(~taken)
    taken[draw.permutation(others)[:OTHERS]] = True
    return np.flatnonzero(taken)


def cross_validated(
    examples: Sequence[FunctionExample], asked: Sequence[FunctionExample]
) -> Iterator[tuple[FunctionExample, Ints]]:
    """The ranks of what is wanted, by models that never saw a bug of the same project."""
    of = folds([example.project for example in asked])
    for fold in sorted(set(of.values())):
        trees = fit(e for e in examples if of.get(e.project) != fold)
        for example in asked:
            if of[example.project] == fold:
                inside = _ranks(
                    trees.predict(example.table), np.flatnonzero(example.wanted).tolist()
                )
                yield example, np.concatenate([inside, example.outside])
