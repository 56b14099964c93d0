"""The function level: which functions the fix changed, ranked over all functions of the tree.

It starts from what ``bench/localization.py`` kept. A function that a fix changed is found in the
tree before by its name, of several of one name the one nearest to its line.

    python bench/localization_functions.py --repos DIR
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import save
from learning_to_rank import cross_validated
from localization import REPORTED, Options, examples_of, options_of
from localization_data import Bug, Case, bugs_of, by_project, cases_of, clones

from epochzero.code import Cache, Repository
from epochzero.locate.features.context import ALL, Context
from epochzero.locate.functions import Functions
from epochzero.locate.mentions import mentions
from epochzero.locate.query import query_of
from epochzero.locate.search import shares_of
from epochzero.locate.techniques.combined import Combined

Floats = npt.NDArray[np.float32]
Ranks = Mapping[str, int]
TOPS = (1, 5, 10)


def main() -> None:
    """Measures, prints the table and keeps it."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    files = _learned(options)
    found = clones(options.repos)
    jobs = [
        (bugs, found[project.lower()], options.work / "cache" / project, files)
        for project, bugs in by_project(bugs_of(options.data.records)).items()
        if project.lower() in found and project.lower() in REPORTED
    ]
    jobs.sort(key=lambda job: -len(job[0]))
    ranks: list[Ranks] = []
    with Pool(len(os.sched_getaffinity(0))) as pool:
        for number, done in enumerate(pool.imap_unordered(_project, jobs), 1):
            ranks += done
            print(f"{number}/{len(jobs)} projects", file=sys.stderr, flush=True)
    table = {name: _table([each[name] for each in ranks]) for name in ranks[0]}
    for name, numbers in table.items():
        print(f"{name:28s}" + "  ".join(f"{key} {value}" for key, value in numbers.items()))
    save(
        "localization_functions",
        {"bugs": len(ranks), "table": table},
        data=[options.data.described()],
    )


def _learned(options: Options) -> Mapping[str, Floats]:
    """The scores of files by models that never saw the project, by bug."""
    measured = [m.example for m in examples_of(options)]
    asked = [example for example in measured if example.project.lower() in REPORTED]
    return {example.bug: scores for example, scores in cross_validated(measured, asked)}


def _project(job: tuple[list[Bug], Path, Path, Mapping[str, Floats]]) -> list[Ranks]:
    bugs, clone, cache, files = job
    found = []
    for case in cases_of(bugs, Repository(clone), Cache(cache)):
        if isinstance(case, Case) and (ranks := _ranks(case, files[case.bug.report.id])):
            found.append(ranks)
    return found


def _ranks(case: Case, learned: Floats) -> Ranks:
    """The rank of the first function wanted by each method; empty where the fix changed none."""
    query, corpus = query_of(case.bug.report), case.corpus
    functions = Functions(corpus)
    wanted = _wanted(case, functions)
    if not wanted:
        return {}
    mentioned = mentions(query, corpus)
    units = Context(query, corpus, 0.0).unit_scores[:, ALL]
    rows = corpus.index.unit_first[functions.document] + functions.place
    scores = {
        "bm25 over bodies": units[rows],
        "from combined files": functions.scores(
            query, corpus, shares_of(Combined().scores(query, corpus)), mentioned
        ),
        "from learned files": functions.scores(query, corpus, shares_of(learned), mentioned),
    }
    return {name: _first(each, wanted) for name, each in scores.items()}


def _wanted(case: Case, functions: Functions) -> list[int]:
    """The numbers of the functions that the fix changed."""
    found = set()
    for file in case.bug.raw["fix"]["files"]:
        document = case.corpus.number.get(str(file["old"]).replace("\\", "/"))
        if document is None:
            continue
        own = np.flatnonzero(functions.document == document).tolist()
        for method in file["methods"]:
            name = method["name"].rpartition(".")[2]
            same = [n for n in own if functions.units[n].name == name]
            if same:
                found.add(min(same, key=lambda n: abs(functions.units[n].start - method["start"])))
    return sorted(found)


def _first(scores: Floats, wanted: Sequence[int]) -> int:
    order = np.argsort(-scores, kind="stable")
    return int(np.flatnonzero(np.isin(order, wanted))[0]) + 1


def _table(ranks: Sequence[int]) -> Mapping[str, float]:
    first = np.array(ranks)
    return {f"any_{top}": round(float(np.mean(first <= top)), 4) for top in TOPS} | {
        "mrr": round(float(np.mean(1 / first)), 4)
    }


if __name__ == "__main__":
    main()
