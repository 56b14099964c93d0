"""Localization of bugs in deep-learning projects: every technique on the same bugs, across projects.

Each bug is looked for in the tree as it was before its fix (``--tree parent``), or in the last
release before its report (``--tree release``), with history and reports up to the report's opening.
The learned ranking is measured by models that never saw the project (10 folds of whole projects).
What was computed for a project is kept in ``--work``, one file a method and tree, so that an
interrupted run goes on where it stopped. Ranks of each bug go there, too: what is in the repository
holds totals only.

    python bench/localization.py --repos DIR
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import DataFile, data_file, save, scratch
from learning_to_rank import cross_validated
from localization_data import Measured
from localization_measure import Job, Project, measured_project
from localization_tables import against, parts, show, table

from epochzero.locate.ranker import LEARNED
from epochzero.locate.techniques import TECHNIQUES
from epochzero.locate.techniques.combined import COMBINED
from epochzero.study.localization.bugs import TREES, Tree, bugs_of, by_project, clones
from epochzero.study.localization.ranks import Ranked, ranked

Floats = npt.NDArray[np.float32]


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    measured, projects = measured_of(options)
    asked = [m for m in measured if m.example.project.lower() in REPORTED or options.all]
    if not asked:
        sys.exit("none of the bugs is of a project that is reported; --all takes every project")
    ranks = ranks_of(options.methods, measured, asked)
    tables = {
        part: {name: table([found[n] for n in numbers]) for name, found in ranks.items()}
        for part, numbers in parts(asked).items()
    }
    for part in ("all", "not localized", "2 to 5 files"):
        show(part, tables.get(part, {}))
    _keep_ranks(options.kept / f"ranks.{options.tree}.jsonl", asked, ranks)
    best = LEARNED if LEARNED in ranks else next(iter(ranks))
    save(
        options.out,
        {
            "tree": options.tree,
            "bugs": len(asked),
            "learned_from": len(measured),
            "lost": _lost(projects),
            "projects": sorted({m.example.project for m in asked}),
            "tables": tables,
            f"{best}_against": against(best, ranks, [m.example.project for m in asked]),
            "seconds": _times(asked),
            "first_and_next_answer": _speeds(projects),
            "memory_mb": _memory(projects),
        },
        data=[options.data.described()],
    )


REPORTED = frozenset(
    [
        "allenai+allennlp",
        "apache+incubator-mxnet",
        "apple+turicreate",
        "asyml+texar-pytorch",
        "aws+sagemaker-python-sdk",
        "awslabs+gluon-ts",
        "bentoml+bentoml",
        "chainer+chainer",
        "dmlc+gluon-nlp",
        "drakkar-software+octobot",
        "fepegar+torchio",
        "genicam+harvesters",
        "gpflow+gpflow",
        "horovod+horovod",
        "keras-team+autokeras",
        "keras-team+keras",
        "kornia+kornia",
        "microsoft+nni",
        "microsoft+pai",
        "openvinotoolkit+cvat",
        "opennmt+opennmt-tf",
        "polyaxon+polyaxon",
        "project-monai+monai",
        "pyro-ppl+pyro",
        "pytorch+fairseq",
        "pytorchbearer+torchbearer",
        "pytorchlightning+pytorch-lightning",
        "ultralytics+yolov3",
        "wandb+client",
    ]
)
"""The 29 projects of the baselines; bugs of others only serve to learn from."""
RANKED = (LEARNED, *(name for name, one in TECHNIQUES.items() if one.training_projects is None))
"""The methods that can be measured here. The networks that ship have learned from these bugs: models
that never saw them are measured by ``dnnloc.py`` and ``bjxnet.py``."""


class Options(argparse.Namespace):
    """What was asked for; what is computed is kept in ``kept``, parsed files in ``work``."""

    repos: Path
    reports: Path | None
    work: Path
    kept: Path
    out: str
    all: bool
    data: DataFile
    tree: Tree
    methods: tuple[str, ...]


def options_of(parser: argparse.ArgumentParser, name: str = "localization") -> Options:
    """Parses the command line.

    Args:
        parser: with the options that a benchmark has beside these.
        name: of the result file when none is given.
    """
    parser.add_argument("--repos", type=Path, required=True, help="folder of clones, owner+name")
    parser.add_argument("--reports", type=Path, help="bug reports; Denchmark's when not given")
    parser.add_argument("--tree", choices=TREES, default="parent", help="which files are searched")
    parser.add_argument(
        "--methods",
        type=_methods,
        default="all",
        help=f"all, or some of {', '.join(RANKED)} with commas between them",
    )
    parser.add_argument("--work", type=Path, help="where to keep what is computed for a project")
    parser.add_argument("--out", help=f"name of the result file; {name} when not given")
    parser.add_argument("--all", action="store_true", help="report all projects that are there")
    options = parser.parse_args(namespace=Options())
    options.work = options.work or scratch() / "localization"
    options.work.mkdir(parents=True, exist_ok=True)
    options.out = options.out or name + ("_release" if options.tree == "release" else "")
    given = options.reports
    options.kept = options.work / given.name if given else options.work
    options.kept.mkdir(exist_ok=True)
    options.data = DataFile(given.name, given) if given else data_file("denchmark/reports.jsonl.gz")
    return options


def _methods(told: str) -> tuple[str, ...]:
    names = RANKED if told == "all" else tuple(dict.fromkeys(told.split(",")))
    if unknown := [name for name in names if name not in RANKED]:
        raise argparse.ArgumentTypeError(
            f"no method {unknown[0]!r} to be measured here; there are {', '.join(RANKED)}"
        )
    return names


# -- Measuring -----------------------------------------------------------------------------------


def examples_of(options: Options) -> list[Measured]:
    """All bugs whose repository is there, measured or read from what was kept."""
    return measured_of(options)[0]


def measured_of(options: Options) -> tuple[list[Measured], list[Project]]:
    """All bugs whose repository is there, and what else was computed for their projects."""
    found = clones(options.repos)
    techniques = tuple(name for name in options.methods if name in TECHNIQUES)
    jobs = [
        Job(
            project,
            bugs,
            found[project.lower()],
            options.kept,
            options.work / "cache",
            options.tree,
            techniques,
        )
        for project, bugs in sorted(by_project(bugs_of(options.data.records)).items())
        if project.lower() in found
    ]
    if not jobs:
        sys.exit(f"{options.repos}: no repository of a project in the data; name them owner+name")
    jobs.sort(key=lambda job: -len(job.bugs))
    projects = []
    # Each project has a process of its own, so that its memory is its own.
    with get_context("spawn").Pool(len(os.sched_getaffinity(0)), maxtasksperchild=1) as pool:
        for number, done in enumerate(pool.imap_unordered(measured_project, jobs), 1):
            projects.append(done)
            told = f"{len(done.measured)} bugs"
            told += f", {len(done.lost)} lost: {done.lost[0]}" if done.lost else ""
            print(f"{number}/{len(jobs)} {done.project}: {told}", file=sys.stderr, flush=True)
    measured = [m for project in projects for m in project.measured]
    return sorted(measured, key=lambda m: m.example.bug), projects


# -- Ranks ---------------------------------------------------------------------------------------


def ranks_of(
    methods: Sequence[str],
    measured: Sequence[Measured],
    asked: Sequence[Measured],
) -> dict[str, list[Ranked]]:
    """The ranks of bugs by each method, the learned ranking by models of other projects.

    Args:
        methods: which.
        measured: the bugs to learn from.
        asked: the bugs to rank.
    """
    scores: dict[str, Mapping[str, Floats]] = {}
    for name in methods:
        if name == LEARNED:
            found = cross_validated([m.example for m in measured], [m.example for m in asked])
            scores[name] = {example.bug: values for example, values in found}
        elif name == COMBINED:  # the hand-weighted sum is a feature, too
            scores[name] = {
                m.example.bug: m.example.table[:, m.example.names.index("guess")] for m in asked
            }
        else:
            scores[name] = {m.example.bug: m.scores[name] for m in asked}
    return {
        name: [ranked(of[m.example.bug], m.example.wanted) for m in asked]
        for name, of in scores.items()
    }


def _keep_ranks(
    path: Path, asked: Sequence[Measured], ranks: Mapping[str, Sequence[Ranked]]
) -> None:
    """Writes of each bug the ranks by each method."""
    rows = []
    for number, measured in enumerate(asked):
        own = {name: found[number]._asdict() for name, found in ranks.items()}
        rows.append(json.dumps({"bug": measured.example.bug, "ranks": own}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


# -- Costs ---------------------------------------------------------------------------------------


def _lost(projects: Sequence[Project]) -> Mapping[str, int]:
    """How many bugs could not be looked for, by the reason."""
    return dict(Counter(_reason(lost) for project in projects for lost in project.lost))


def _reason(lost: str) -> str:
    said = lost.partition(": ")[2]
    known = ("not in the tree", "release")
    return said if any(words in said for words in known) else "the fix or its files are not there"


def _times(asked: Sequence[Measured]) -> Mapping[str, float]:
    return {
        "corpus_median": round(statistics.median(m.seconds[0] for m in asked), 4),
        "features_median": round(statistics.median(m.seconds[1] for m in asked), 4),
        "features_most": round(max(m.seconds[1] for m in asked), 4),
    }


def _speeds(projects: Sequence[Project]) -> Mapping[str, Mapping[str, float]]:
    """Seconds over projects, of the last tree of each, by method."""
    taken = [project.speed for project in projects if project.speed]
    rows: dict[str, Any] = {}
    for name in taken[0]:
        cold, warm = zip(*(each[name] for each in taken), strict=True)
        rows[name] = {
            "first_median": statistics.median(cold),
            "first_most": max(cold),
            "next_median": statistics.median(warm),
            "next_most": max(warm),
        }
    return rows


def _memory(projects: Sequence[Project]) -> Mapping[str, float]:
    """Of the processes that computed the features, one a project."""
    held = [project.memory_mb for project in projects]
    return {"median": statistics.median(held), "most": max(held)}


if __name__ == "__main__":
    main()
