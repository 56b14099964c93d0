"""DNNLOC across projects: its networks trained without a project's bugs find the bugs of that project.

Each bug is looked for among all files of the tree before its fix, by the functions that ship, with
a network that never saw a bug of the project (the folds of `learning_to_rank.folds`). BM25 and
BugLocator are measured on the same bugs. What was computed for a project is kept in ``--work``.

    python bench/dnnloc.py --repos DIR
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from common import SEED, save
from learning_to_rank import folds
from localization import REPORTED, Options, options_of
from localization_measure import MENTIONS
from localization_tables import show, table
from split import held

from epochzero.code import Cache, Repository
from epochzero.locate.features.context import Context
from epochzero.locate.query import query_of
from epochzero.locate.techniques.bm25 import BM25
from epochzero.locate.techniques.buglocator import BugLocator
from epochzero.locate.techniques.dnnloc import (
    COLUMNS,
    SPACES,
    DenseLayer,
    DnnLocModel,
    columns,
    file_weights,
    report_counts,
)
from epochzero.locate.techniques.vectors import log_frequency
from epochzero.study.localization.bugs import Bug, BugCase, bugs_of, by_project, cases_of, clones
from epochzero.study.localization.ranks import ranked

__all__ = ["SETTINGS", "Example", "examples_of", "fit", "jobs_of", "vocabularies", "words_of"]

Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]

SETTINGS = {
    "words": 1000,
    "dimensions": 24,
    "encoder_rounds": 400,
    "relevancy_nodes": 64,
    "relevancy_rounds": 1500,
    "combination_nodes": 300,
    "combination_rounds": 1500,
    "batch": 256,
    "learning_rate": 0.003,
    "weight_decay": 1e-4,
    "inner_folds": 2,
}
"""The sizes are what a small model file allows. The paper gives no rounds and no rates; these were
not chosen by results. That features are scaled within a project was, on the development half."""
WRONG = 300
"""So many wrong files of each bug are learned from, those most like the report (Section VIII.A)."""
ENCODED = 10
"""So many files of each bug are shown to the autoencoders."""
FORMAT = 1
"""Goes up when what is kept of a project changes."""


# -- What is learned from ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A matrix without its zeros: ``table[row, column] = value``, row by row."""

    row: npt.NDArray[np.uint16]
    column: npt.NDArray[np.uint16]
    value: Floats

    @classmethod
    def of(cls, table: Floats) -> Sparse:
        """The matrix's entries."""
        row, column = np.nonzero(table)
        value = table[row, column]
        return cls(row.astype(np.uint16), column.astype(np.uint16), value)

    def dense(self, rows: Numbers, columns: Numbers) -> Floats:
        """Some rows and columns, each given once; the columns rising."""
        order = np.argsort(rows)
        kept = np.isin(self.row, rows) & np.isin(self.column, columns)
        row = order[np.searchsorted(rows, self.row[kept], sorter=order)]
        table = np.zeros((len(rows), len(columns)), np.float32)
        table[row, np.searchsorted(columns, self.column[kept])] = self.value[kept]
        return table


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A bug with all files of the tree before its fix.

    Attributes:
        bug: its id.
        project: ``owner+name``.
        table: `COLUMNS`, (files, 5).
        wanted: which files the fix changed, (files,).
        report: counts of the vocabulary's words in the report, (words,).
        spaces: tf-idf of the vocabulary's words in the files, (files, words), by space.
        localized: the report names a file that the fix changed.
        rivals: scores of other techniques, (files,), by name.
    """

    bug: str
    project: str
    table: Floats
    wanted: npt.NDArray[np.bool_]
    report: Floats
    spaces: Mapping[str, Sparse]
    localized: bool
    rivals: Mapping[str, Floats]

    @property
    def learned(self) -> Numbers:
        """The files that are learned from: those wanted and the wrong ones most like the report."""
        like = np.argsort(-self.table[:, COLUMNS.index("text")], kind="stable")
        return np.concatenate([np.flatnonzero(self.wanted), like[~self.wanted[like]][:WRONG]])


def words_of(bugs: Sequence[Bug]) -> Hashes:
    """The vocabulary that bugs give: the words that the reports of most projects hold, sorted."""
    projects: defaultdict[int, set[str]] = defaultdict(set)
    reports: Counter[int] = Counter()
    for bug in bugs:
        for word in query_of(bug.report).hashes.tolist():
            projects[word].add(bug.project)
            reports[word] += 1
    ordered = sorted(reports, key=lambda word: (-len(projects[word]), -reports[word], word))
    return np.array(sorted(ordered[: SETTINGS["words"]]), np.uint32)


def examples_of(
    jobs: Mapping[str, tuple[list[Bug], Path]], vocabulary: Hashes, work: Path
) -> list[Example]:
    """The bugs of all projects, read from what was kept where it was.

    Args:
        jobs: the bugs and the clone of each project.
        vocabulary: all words that any network may know.
        work: where to keep what was computed.
    """
    found: list[Example] = []
    for project, (bugs, clone) in jobs.items():
        kept = work / f"dnnloc-{project}.{FORMAT}.pickle"
        if not kept.exists():
            cases = cases_of(bugs, Repository(clone), Cache(work / "cache" / project))
            made = [_example(case, vocabulary) for case in cases if not isinstance(case, str)]
            kept.write_bytes(pickle.dumps(made))
        found += pickle.loads(kept.read_bytes())
        print(f"{project}: {len(found)} bugs so far", file=sys.stderr, flush=True)
    return found


def _example(case: BugCase, vocabulary: Hashes) -> Example:
    query, corpus = query_of(case.bug.report), case.corpus
    weights = file_weights(corpus, vocabulary)
    mentions = Context(query, corpus, opened=0.0).mentions
    wanted = np.zeros(len(corpus), bool)
    wanted[list(case.wanted)] = True
    return Example(
        case.bug.report.id,
        case.bug.project,
        columns(query, corpus)[1],
        wanted,
        report_counts(query, vocabulary),
        {space: Sparse.of(weights[space]) for space in SPACES},
        any((mentions[name][wanted] > 0).any() for name in MENTIONS),
        {rival.name: rival.scores(query, corpus) for rival in (BM25(), BugLocator())},
    )


# -- Training ----------------------------------------------------------------------------------


def fit(examples: Sequence[Example], vocabulary: Hashes, words: Hashes) -> DnnLocModel:
    """The network learned from bugs, one part after the other (Section III).

    The combining network learns from relevancies of networks that did not see the project, as it
    will meet no others.

    Args:
        examples: to learn from.
        vocabulary: the words that the examples count.
        words: those of them that the network is to know.
    """
    known = np.flatnonzero(np.isin(vocabulary, words))
    network = _projecting(examples, vocabulary, known)
    coded = [_coded(network, example, known, example.learned) for example in examples]
    wanted = [example.wanted[example.learned] for example in examples]
    of = folds([example.project for example in examples], SETTINGS["inner_folds"])
    inner = np.array([of[example.project] for example in examples])
    inputs: list[Floats] = [example.table[example.learned] for example in examples]
    for fold in range(SETTINGS["inner_folds"]):
        others = np.flatnonzero(inner != fold)
        part = _relating(network, [coded[n] for n in others], [wanted[n] for n in others])
        for n in np.flatnonzero(inner == fold):
            inputs[n] = np.column_stack([part.relevancies(*coded[n]), inputs[n]])
    network = _relating(network, coded, wanted)
    return replace(network, combination=_classifier(inputs, wanted, "combination"))


def _projecting(examples: Sequence[Example], vocabulary: Hashes, known: Numbers) -> DnnLocModel:
    """A network that can project, and nothing else yet."""
    counts = np.stack([example.report[known] for example in examples])
    held = np.count_nonzero(counts, axis=0)
    rarity = np.log(len(counts) / np.maximum(1, held)).astype(np.float32)
    encoders = {"report": _encoder(log_frequency(counts) * rarity)}
    draw = np.random.default_rng(SEED)
    for space in SPACES:
        tables = []
        for example in examples:
            rows = draw.permutation(example.learned)[:ENCODED]
            tables.append(example.spaces[space].dense(rows, known))
        encoders[space] = _encoder(np.concatenate(tables))
    none = DenseLayer(np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
    return DnnLocModel(vocabulary[known], rarity, encoders, (none, none), (none, none))


def _coded(
    network: DnnLocModel, example: Example, known: Numbers, rows: Numbers
) -> tuple[Floats, Floats]:
    """The projections of a report and of some files."""
    weights = {space: example.spaces[space].dense(rows, known) for space in SPACES}
    return network.report_code(example.report[known]), network.file_codes(weights)


def _relating(
    network: DnnLocModel,
    coded: Sequence[tuple[Floats, Floats]],
    wanted: Sequence[npt.NDArray[np.bool_]],
) -> DnnLocModel:
    """The network with a relevancy learned from projections."""
    pairs = [np.hstack([np.repeat(report, len(of), axis=0), of]) for report, of in coded]
    return replace(network, relevancy=_classifier(pairs, wanted, "relevancy"))


def _encoder(table: Floats) -> DenseLayer:
    """The encoder of an autoencoder (Section V) that makes vectors similar to what they were."""
    rows = torch.from_numpy(table[table.any(axis=1)].astype(np.float32))
    rows = torch.nn.functional.normalize(rows)
    torch.manual_seed(SEED)
    encode = torch.nn.Linear(rows.shape[1], SETTINGS["dimensions"])
    decode = torch.nn.Linear(SETTINGS["dimensions"], rows.shape[1])
    model = torch.nn.Sequential(encode, torch.nn.Tanh(), decode)

    def loss() -> torch.Tensor:
        batch = rows[torch.randint(len(rows), (SETTINGS["batch"],))]
        return 1 - torch.nn.functional.cosine_similarity(model(batch), batch).mean()

    _trained(model, loss, SETTINGS["encoder_rounds"])
    return _layer(encode)


def _classifier(
    inputs: Sequence[Floats], wanted: Sequence[npt.NDArray[np.bool_]], part: str
) -> tuple[DenseLayer, DenseLayer]:
    """A network with one hidden layer that tells the files wanted from others.

    Each bug is drawn as often as another, and for each a file wanted as often as a wrong one.
    """
    rows = torch.from_numpy(np.concatenate(inputs).astype(np.float32))
    labels = torch.from_numpy(np.concatenate(wanted).astype(np.float32))
    chance = torch.from_numpy(np.concatenate([_chances(of) for of in wanted]))
    torch.manual_seed(SEED)
    hidden = torch.nn.Linear(rows.shape[1], SETTINGS[f"{part}_nodes"])
    output = torch.nn.Linear(SETTINGS[f"{part}_nodes"], 1)
    model = torch.nn.Sequential(hidden, torch.nn.Tanh(), output)
    rounds = SETTINGS[f"{part}_rounds"]
    drawn = torch.multinomial(chance, rounds * SETTINGS["batch"], replacement=True)
    batches = iter(drawn.split(SETTINGS["batch"]))

    def loss() -> torch.Tensor:
        batch = next(batches)
        return torch.nn.functional.binary_cross_entropy_with_logits(
            model(rows[batch])[:, 0], labels[batch]
        )

    _trained(model, loss, rounds)
    return _layer(hidden), _layer(output)


def _chances(wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    right = max(1, int(wanted.sum()))
    return np.where(wanted, 1 / right, 1 / max(1, len(wanted) - right))


def _trained(model: torch.nn.Module, loss: Callable[[], torch.Tensor], rounds: int) -> None:
    rate, decay = SETTINGS["learning_rate"], SETTINGS["weight_decay"]
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rounds)
    for _ in range(rounds):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()


def _layer(linear: torch.nn.Linear) -> DenseLayer:
    return DenseLayer(linear.weight.detach().numpy().T.copy(), linear.bias.detach().numpy().copy())


# -- Measuring ---------------------------------------------------------------------------------


Ranks = Mapping[str, tuple[int, float]]
"""The rank of the first file wanted, from 1, and the average precision, by technique."""


def main() -> None:
    """Trains, measures, prints the tables and keeps them."""
    options = options_of(argparse.ArgumentParser(description=__doc__))
    jobs = jobs_of(options)
    of = folds_of(jobs)
    learned, vocabulary = vocabularies(jobs)
    examples = examples_of(jobs, vocabulary, options.work)
    found: list[tuple[Example, Ranks]] = []
    for fold in sorted(set(of.values())):
        others = [e for e in examples if of.get(e.project) != fold]
        network = fit(others, vocabulary, learned[fold])
        found += [
            (e, _ranks(network, e, vocabulary)) for e in examples if of.get(e.project) == fold
        ]
        print(f"fold {fold}: {len(found)} bugs found", file=sys.stderr, flush=True)
    _save(found, len(examples), options)


def jobs_of(options: Options) -> Mapping[str, tuple[list[Bug], Path]]:
    """The bugs and the clone of each project whose clone is there."""
    found = clones(options.repos)
    return {
        project: (bugs, found[project.lower()])
        for project, bugs in sorted(by_project(bugs_of(options.data.records)).items())
        if project.lower() in found
    }


def folds_of(jobs: Mapping[str, tuple[list[Bug], Path]]) -> Mapping[str, int]:
    """The fold of each project whose bugs are asked for."""
    asked = [project for project in jobs if project.lower() in REPORTED]
    return folds([bug.project for project in asked for bug in jobs[project][0]])


def vocabularies(
    jobs: Mapping[str, tuple[list[Bug], Path]],
) -> tuple[Mapping[int | None, Hashes], Hashes]:
    """The words that each fold's network may know, by fold, those of a network that leaves nothing
    out by None, and all of them together.
    """
    of = folds_of(jobs)
    bugs = [bug for own, _ in jobs.values() for bug in own]
    learned: dict[int | None, Hashes] = {None: words_of(bugs)}
    for fold in sorted(set(of.values())):
        learned[fold] = words_of([bug for bug in bugs if of.get(bug.project) != fold])
    return learned, np.unique(np.concatenate(list(learned.values())))


def _ranks(network: DnnLocModel, example: Example, vocabulary: Hashes) -> Ranks:
    # What ships ranks with the shortened weights, so these are measured.
    shortened = DnnLocModel.of(network.as_json())
    known = np.flatnonzero(np.isin(vocabulary, shortened.words))
    coded = _coded(shortened, example, known, np.arange(len(example.wanted)))
    own = shortened.combined(shortened.relevancies(*coded), example.table)
    scores = {**example.rivals, "dnnloc": own}
    wanted = np.flatnonzero(example.wanted).tolist()
    return {name: ranked(of_files, wanted) for name, of_files in scores.items()}


def _save(found: Sequence[tuple[Example, Ranks]], learned_from: int, options: Options) -> None:
    parts: defaultdict[str, list[Ranks]] = defaultdict(list)
    for example, ranks in found:
        parts["all"].append(ranks)
        parts["held-out half" if held(example.bug) else "development half"].append(ranks)
        parts["localized" if example.localized else "not localized"].append(ranks)
    tables = {
        part: {name: table([ranks[name] for ranks in of]) for name in of[0]}
        for part, of in sorted(parts.items())
    }
    for part, rows in tables.items():
        show(part, rows)
    save(
        "localization_dnnloc",
        {
            "bugs": len(found),
            "learned_from": learned_from,
            "settings": SETTINGS,
            "tables": tables,
        },
        data=[options.data.described()],
    )


if __name__ == "__main__":
    # What is kept names its module, which other scripts must find, too.
    import dnnloc

    dnnloc.main()
