"""Localization of bugs in deep-learning projects: every technique on the same bugs, across projects.

Each bug is looked for in the tree as it was before its fix, with history and reports up to the
report's opening. The learned ranking is measured by models that never saw the project (10 folds of
whole projects). What was computed for a project is kept in ``--work``, so that an interrupted run
goes on where it stopped.

    python bench/localization.py --repos DIR
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import SEED, DataFile, data_file, save, scratch
from learning_to_rank import Example, cross_validated
from localization_data import Bug, Case, Measured, bugs_of, by_project, cases_of, clones
from split import held

from epochzero.code import Cache, Repository
from epochzero.locate.features import features_of
from epochzero.locate.query import query_of
from epochzero.locate.techniques import TECHNIQUES

Floats = npt.NDArray[np.float32]

MENTIONS = ("frame_innermost", "path_in_text", "path_in_title", "module_in_text")
"""Features that are positive where the report names the file."""
TOPS = (1, 5, 10)
DRAWS = 2000
FORMAT = 3
"""Goes up when what is kept of a project changes."""


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    measured = examples_of(options)
    asked = [m for m in measured if m.example.project.lower() in REPORTED or options.all]
    ranks = {name: [_rank(m, m.scores[name]) for m in asked] for name in asked[0].scores}
    # The hand-weighted sum is a feature, and what `--method combined` ranks by.
    ranks["combined"] = [
        _rank(m, m.example.table[:, m.example.names.index("guess")]) for m in asked
    ]
    by_bug = {m.example.bug: m for m in asked}
    learned = dict.fromkeys(by_bug, (0, 0.0))
    for example, scores in cross_validated(
        [m.example for m in measured], [m.example for m in asked]
    ):
        learned[example.bug] = _rank(by_bug[example.bug], scores)
    ranks["learned"] = list(learned.values())
    tables = {
        part: {name: _table([found[n] for n in numbers]) for name, found in ranks.items()}
        for part, numbers in _numbers(asked).items()
    }
    for part in ("all", "not localized"):
        _show(part, tables[part])
    save(
        options.out,
        {
            "bugs": len(asked),
            "learned_from": len(measured),
            "projects": sorted({m.example.project for m in asked}),
            "tables": tables,
            "learned_against": _against(ranks, asked),
            "seconds": _times(asked),
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


class Options(argparse.Namespace):
    """What was asked for."""

    repos: Path
    work: Path
    out: str
    all: bool
    data: DataFile


def options_of(parser: argparse.ArgumentParser) -> Options:
    """Parses the command line."""
    parser.add_argument("--repos", type=Path, required=True, help="folder of clones, owner+name")
    parser.add_argument("--work", type=Path, help="where to keep what is computed for a project")
    parser.add_argument("--out", default="localization", help="name of the result file")
    parser.add_argument("--all", action="store_true", help="report all projects that are there")
    options = parser.parse_args(namespace=Options())
    options.work = options.work or scratch() / "localization"
    options.work.mkdir(parents=True, exist_ok=True)
    options.data = data_file("denchmark/reports.jsonl.gz")
    return options


def examples_of(options: Options) -> list[Measured]:
    """All bugs whose repository is there, measured or read from what was kept."""
    found = clones(options.repos)
    jobs = [
        (project, bugs, found[project.lower()], options.work)
        for project, bugs in sorted(by_project(bugs_of(options.data.records)).items())
        if project.lower() in found
    ]
    if not jobs:
        sys.exit(f"{options.repos}: no repository of a project in the data; name them owner+name")
    jobs.sort(key=lambda job: -len(job[1]))
    measured: list[Measured] = []
    with Pool(len(os.sched_getaffinity(0))) as pool:
        for number, (project, of_project, lost) in enumerate(
            pool.imap_unordered(_project, jobs), 1
        ):
            measured += of_project
            told = f"{len(of_project)} bugs" + (f", {len(lost)} lost: {lost[0]}" if lost else "")
            print(f"{number}/{len(jobs)} {project}: {told}", file=sys.stderr, flush=True)
    return sorted(measured, key=lambda m: m.example.bug)


def _project(job: tuple[str, list[Bug], Path, Path]) -> tuple[str, list[Measured], list[str]]:
    """The bugs of one project."""
    project, bugs, clone, work = job
    kept = work / f"{project}.{FORMAT}.pickle"
    if kept.exists():
        measured, lost = pickle.loads(kept.read_bytes())
        return project, measured, lost
    measured, lost = [], []
    cases = cases_of(bugs, Repository(clone), Cache(work / "cache" / project))
    start = time.perf_counter()
    for case in cases:
        if isinstance(case, str):
            lost.append(case)
        else:
            measured.append(_measure(case, time.perf_counter() - start))
        start = time.perf_counter()
    partial = kept.with_suffix(".partial")
    partial.write_bytes(pickle.dumps((measured, lost)))
    partial.rename(kept)
    return project, measured, lost


def _measure(case: Case, seconds: float) -> Measured:
    query = query_of(case.bug.report)
    start = time.perf_counter()
    names, table = features_of(query, case.corpus)
    taken = time.perf_counter() - start
    named = table[list(case.wanted)][:, [names.index(name) for name in MENTIONS]]
    label = case.bug.raw.get("label") or {}
    return Measured(
        Example(case.bug.report.id, case.bug.project, names, table, case.wanted),
        {name: make().scores(query, case.corpus) for name, make in TECHNIQUES.items()},
        bool((named > 0).any()),
        label.get("type", ""),
        label.get("extrinsic"),
        tuple(case.bug.raw["project_class"]),
        (seconds, taken),
    )


# -- Tables --------------------------------------------------------------------------------------


def _rank(measured: Measured, scores: Floats) -> tuple[int, float]:
    """The rank of the first file wanted, from 1, and the average precision."""
    order = np.argsort(-scores, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    ranks = np.sort(place[list(measured.example.wanted)])
    return int(ranks[0]), float(np.mean(np.arange(1, len(ranks) + 1) / ranks))


def _table(ranks: Sequence[tuple[int, float]]) -> Mapping[str, float]:
    if not ranks:
        return {"bugs": 0}
    first = np.array([rank for rank, _ in ranks])
    return {
        "bugs": len(ranks),
        "map": round(statistics.fmean(precision for _, precision in ranks), 4),
        "mrr": round(float(np.mean(1 / first)), 4),
        **{f"top_{top}": round(float(np.mean(first <= top)), 4) for top in TOPS},
    }


def _numbers(asked: Sequence[Measured]) -> Mapping[str, list[int]]:
    """The bugs of each table."""
    parts: defaultdict[str, list[int]] = defaultdict(list)
    for number, measured in enumerate(asked):
        for part in _parts(measured):
            parts[part].append(number)
    return dict(sorted(parts.items()))


def _parts(measured: Measured) -> Iterator[str]:
    """The tables in which a bug counts."""
    yield "all"
    yield "held-out half" if held(measured.example.bug) else "development half"
    yield "localized" if measured.localized else "not localized"
    if measured.extrinsic is not None:
        yield "extrinsic" if measured.extrinsic else "intrinsic"
    if measured.kind:
        yield f"type {measured.kind}"
    yield from (f"class {name}" for name in measured.classes)
    yield f"project {measured.example.project}"


def _against(
    ranks: Mapping[str, Sequence[tuple[int, float]]], asked: Sequence[Measured]
) -> Mapping[str, object]:
    """The difference in average precision between the learned ranking and each other: its 95 %
    interval by a bootstrap over projects, and the effect size (Cohen's d of paired differences).
    """
    own = np.array([precision for _, precision in ranks["learned"]])
    projects = sorted({m.example.project for m in asked})
    of = np.array([projects.index(m.example.project) for m in asked])
    draw = np.random.default_rng(SEED)
    found = {}
    for name, others in ranks.items():
        if name == "learned":
            continue
        difference = own - np.array([precision for _, precision in others])
        sums, counts = np.bincount(of, difference), np.bincount(of)
        drawn = draw.integers(0, len(projects), (DRAWS, len(projects)))
        means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        found[name] = {
            "mean": round(float(difference.mean()), 4),
            "interval": [round(float(low), 4), round(float(high), 4)],
            "cohens_d": round(float(difference.mean() / difference.std(ddof=1)), 3),
        }
    return found


def _times(asked: Sequence[Measured]) -> Mapping[str, float]:
    return {
        "corpus_median": round(statistics.median(m.seconds[0] for m in asked), 4),
        "features_median": round(statistics.median(m.seconds[1] for m in asked), 4),
        "features_most": round(max(m.seconds[1] for m in asked), 4),
    }


def _show(part: str, table: Mapping[str, Mapping[str, float]]) -> None:
    for name, numbers in table.items():
        told = "  ".join(f"{key} {value}" for key, value in numbers.items())
        print(f"{part:16s}{name:14s}{told}")


if __name__ == "__main__":
    main()
