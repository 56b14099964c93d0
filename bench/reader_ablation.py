"""Whether the reader improves the learned ranking: with and without its scores, projects left out.

It joins the scores that ``train_reader.py train --score`` wrote with the features that
``localization.py`` stored. Only the development half of the projects is measured (``split.py``), so
that the held-out half is opened for a reader that helps.

    python bench/reader_ablation.py --repos DIR --scores NAME=FILE --log FILE
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import reader_candidates
from common import save
from learning_to_rank import Example, fit, folds
from localization import options_of
from localization_measure import FORMAT
from localization_tables import show, table
from reader_text import VIEWS
from split import held

from epochzero.locate.ranker import ranked as scored
from epochzero.study.localization.ranks import Ranked, ranked

Floats = npt.NDArray[np.float32]
FOLDS = 3
FULL = "without reader"


def main() -> None:
    """Measures, prints the tables and stores them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--log", type=Path, help="output of the training, stored with the result")
    options = options_of(parser, "reader_ablation")
    stored = sorted(options.kept.glob(f"*.{options.tree}.features.{FORMAT}.pickle"))
    projects = [pickle.loads(path.read_bytes()) for path in stored]
    measured = {m.example.bug: m for project in projects for m in project.measured}
    names, files = zip(*(given.split("=", 1) for given in options.scores), strict=True)
    candidates = reader_candidates.stored_files(options.kept, options.tree)
    read = {name: _by_bug(candidates, Path(file)) for name, file in zip(names, files, strict=True)}
    chosen = [m for bug, m in measured.items() if bug in candidates and not held(bug)]
    found = {FULL: _ranks([m.example for m in chosen])}
    for count in range(1, len(names) + 1):
        used = names[:count]
        examples = [_joined(m.example, {name: read[name] for name in used}) for m in chosen]
        found[f"with {' and '.join(used)}"] = _ranks(examples)
    for name in names:
        column = [_columns(read[name][m.example.bug], len(m.example.table)) for m in chosen]
        pairs = zip(column, chosen, strict=True)
        found[f"{name} alone"] = [ranked(c["prose_best"], m.example.wanted) for c, m in pairs]
    parts = {"all": [True] * len(chosen), "not localized": [not m.localized for m in chosen]}
    tables = {
        part: {
            name: table([rank for rank, inside in zip(ranks, chosen_part, strict=True) if inside])
            for name, ranks in found.items()
        }
        for part, chosen_part in parts.items()
    }
    for part, rows in tables.items():
        show(part, rows)
    log = options.log.read_text("utf-8").splitlines() if options.log else []
    save(
        options.out,
        {"half": "development", "folds": FOLDS, "tables": tables, "training": log},
        data=[options.data.described()],
    )


_Read = tuple[Sequence[tuple[int, Sequence[int], Sequence[int]]], Floats]


def _by_bug(candidates: Mapping[str, _Read], path: Path) -> Mapping[str, _Read]:
    """The scores of each bug, (pieces, views), with its files."""
    scores = np.load(path)["scores"].astype(np.float32)
    found, begin = {}, 0
    for bug, (files, _) in candidates.items():
        end = begin + sum(len(units) for _, units, _ in files)
        found[bug] = (files, scores[begin:end])
        begin = end
    if begin != len(scores):
        raise ValueError(f"{path}: the scores are of other candidates")
    return found


def _columns(read: _Read, size: int) -> Mapping[str, Floats]:
    """Features of each file: its best piece and the mean of its best three, by view."""
    files, scores = read
    best = np.full((size, 2, len(VIEWS)), np.nan, np.float32)
    begin = 0
    for number, units, _ in files:
        own = np.sort(scores[begin : begin + len(units)], axis=0)[::-1]
        begin += len(units)
        if len(own):
            best[number] = own[0], own[:3].mean(axis=0)
    columns: dict[str, Floats] = {}
    for view, name in enumerate(VIEWS):
        for kind, label in enumerate(("best", "three")):
            values = best[:, kind, view]
            least = np.nanmin(values) if np.isfinite(values).any() else 0.0
            columns[f"{name}_{label}"] = np.where(np.isfinite(values), values, least)
        values = columns[f"{name}_best"]
        columns[f"standard_{name}"] = (values - values.mean()) / (values.std() + 1e-6)
        order = np.argsort(-values, kind="stable")
        columns[f"rank_{name}"] = np.log1p(np.argsort(order)).astype(np.float32)
    return columns


def _joined(example: Example, read: Mapping[str, Mapping[str, _Read]]) -> Example:
    columns = {
        f"{name}_{column}": values
        for name, of in read.items()
        for column, values in _columns(of[example.bug], len(example.table)).items()
    }
    table_ = np.concatenate([example.table, np.stack([*columns.values()], axis=1)], axis=1)
    return replace(example, names=(*example.names, *columns), table=table_)


def _ranks(examples: Sequence[Example]) -> list[Ranked]:
    """The ranks by models that never saw a bug of the same project."""
    of = folds([example.project for example in examples], FOLDS)
    models = [fit([e for e in examples if of[e.project] != fold]) for fold in range(FOLDS)]
    return [ranked(scored(models[of[e.project]], e.names, e.table), e.wanted) for e in examples]


if __name__ == "__main__":
    main()
