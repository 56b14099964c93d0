"""bjXnet across projects, and the weights that the package ships.

Two folds of whole projects: the bugs of each are ranked by a network that learned from the other.
The trees and the bugs are those of ``localization.py``, whose kept results give BM25's scores too.
Of each project at most ``--bugs`` bugs are ranked, drawn by their ids, among all files of their trees;
at most ``--learn`` are learned from, each with the files of its fix and some others. With ``--ship``,
nothing is measured, but one network learns from all of those and becomes the package's ``bjxnet.npz``.

    python bench/localization.py --repos DIR
    python bench/bjxnet.py --repos DIR
    python bench/bjxnet.py --repos DIR --ship

Measuring takes about a quarter of an hour on one core; graphs are kept in ``--work``. What the
network asks of a file and the epochs were chosen on the development half (``--development``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from common import SEED, save
from learning_to_rank import folds
from localization import REPORTED, Options, examples_of, options_of
from localization_data import Measured
from localization_tables import table
from split import held

from epochzero.code import File, Repository, Snapshot
from epochzero.code.graph import MOST_NODES, graph_of
from epochzero.locate.corpus import searched
from epochzero.locate.query import query_of
from epochzero.locate.techniques.bjxnet import CARD
from epochzero.locate.techniques.bjxnet.graphs import FileGraph, numbered, report_words
from epochzero.locate.techniques.bjxnet.network import BjxNet, TrainingBug, fit
from epochzero.study.localization.bugs import PYTHON, Bug, bugs_of, clones
from epochzero.study.localization.ranks import ranked

TARGET = (
    Path(__file__).resolve().parent.parent / "src/epochzero/locate/techniques/bjxnet/bjxnet.npz"
)
FORMAT = 1
"""Goes up when the graphs change."""
FOLDS = 2
LIKELY, OTHERS = 8, 6
"""Of each bug so many of BM25's likeliest files and so many others are learned from."""
MOST_WANTED = 4
"""Files of one fix that are learned from."""

Floats = npt.NDArray[np.float32]


class BjxnetOptions(Options):
    """What was asked for."""

    device: str
    epochs: int
    bugs: int
    learn: int
    development: bool
    ship: bool


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="where to train, as PyTorch names it")
    parser.add_argument("--epochs", type=int, default=2, help="0: the network before training")
    parser.add_argument("--bugs", type=int, default=4, help="most bugs of a project to rank")
    parser.add_argument("--learn", type=int, default=16, help="most bugs of one to learn from")
    parser.add_argument("--development", action="store_true", help="rank the development half only")
    parser.add_argument("--ship", action="store_true", help="write the weights of the package")
    options = cast(BjxnetOptions, options_of(parser))
    bugs = {bug.report.id: bug for bug in bugs_of(options.data.records)}
    trees = Trees(options.repos, options.work / f"bjxnet-graphs.{FORMAT}.pickle")
    measured = [
        one
        for one in examples_of(options)
        if not (options.development and held(one.example.bug))
        and len(report_words(query_of(bugs[one.example.bug].report)))
    ]
    start = time.perf_counter()
    learned = _drawn(measured, options.learn)
    examples = {one.example.bug: _example(one, bugs[one.example.bug], trees) for one in learned}
    trees.keep()
    _tell(f"{len(examples)} bugs to learn from", start)
    if options.ship:
        network = _fit(list(examples.values()), options)
        _ship(network, Counter(one.example.project for one in learned), options)
        return
    asked = _drawn([m for m in measured if m.example.project.lower() in REPORTED], options.bugs)
    scored = list(_cross_validated(asked, learned, examples, bugs, trees, options))
    trees.keep()
    tables = _tables(scored)
    print(json.dumps(tables, indent=1))
    if options.development:
        return
    save(
        "localization_bjxnet",
        {
            "bugs": len(scored),
            "learned_from": len(examples),
            "projects": sorted({one.example.project for one in asked}),
            "most_bugs_ranked_of_a_project": options.bugs,
            "most_bugs_learned_from_of_a_project": options.learn,
            "epochs": options.epochs,
            "most_nodes_of_a_file": MOST_NODES,
            "tables": tables,
        },
        data=[options.data.described()],
    )


# -- Files -------------------------------------------------------------------------------------


class Trees:
    """The files of the bugs' trees as graphs, each content once.

    Args:
        folder: of clones.
        kept: file in which the graphs are kept for the next run.
    """

    def __init__(self, folder: Path, kept: Path) -> None:
        self._clones = clones(folder)
        self._kept = kept
        self._repositories: dict[str, Repository] = {}
        self._graphs: dict[str, FileGraph] = {}
        if kept.exists():
            self._graphs = pickle.loads(kept.read_bytes())

    def keep(self) -> None:
        """Writes the graphs."""
        partial = self._kept.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(self._graphs))
        partial.rename(self._kept)

    def before(self, bug: Bug) -> tuple[Snapshot, list[File]]:
        """The tree before a fix, and the files of it that are searched."""
        project = bug.project.lower()
        if project not in self._repositories:
            self._repositories[project] = Repository(self._clones[project])
        repository = self._repositories[project]
        snapshot = repository.snapshot(repository.resolve(bug.fix).parents[0])
        return snapshot, searched(snapshot, languages=PYTHON)

    def graphs(self, snapshot: Snapshot, files: Sequence[File]) -> list[FileGraph]:
        """The graphs of some files."""
        missing = [file for file in files if file.blob not in self._graphs]
        for file, content in snapshot.read(missing):
            self._graphs[file.blob] = numbered(graph_of(content, file.path))
        nothing = numbered(graph_of(b"", "empty.py"))  # what is too large to be read
        return [self._graphs.get(file.blob, nothing) for file in files]


def _example(one: Measured, bug: Bug, trees: Trees) -> TrainingBug:
    """The files of a fix, BM25's likeliest others, and some at random."""
    draw = np.random.default_rng([SEED, _number(bug.report.id)])
    wanted = list(one.example.wanted)[:MOST_WANTED]
    order = [n for n in np.argsort(-one.scores["bm25"]).tolist() if n not in one.example.wanted]
    rest = order[LIKELY:]
    drawn = draw.choice(rest, min(OTHERS, len(rest)), replace=False).tolist() if rest else []
    chosen = [*wanted, *order[:LIKELY], *drawn]
    snapshot, files = trees.before(bug)
    assert len(files) == len(one.scores["bm25"])
    return TrainingBug(
        report_words(query_of(bug.report)),
        trees.graphs(snapshot, [files[n] for n in chosen]),
        np.arange(len(chosen)) < len(wanted),
    )


def _number(bug: str) -> int:
    return int.from_bytes(hashlib.sha256(bug.encode()).digest()[:4], "little")


# -- Training and ranking ----------------------------------------------------------------------


def _drawn(measured: Sequence[Measured], most: int) -> list[Measured]:
    """So many bugs of each project at most."""
    found: list[Measured] = []
    count: Counter[str] = Counter()
    for one in sorted(measured, key=lambda m: _number(m.example.bug)):
        if count[one.example.project] < most:
            count[one.example.project] += 1
            found.append(one)
    return sorted(found, key=lambda m: m.example.bug)


def _cross_validated(
    asked: Sequence[Measured],
    learned: Sequence[Measured],
    examples: Mapping[str, TrainingBug],
    bugs: Mapping[str, Bug],
    trees: Trees,
    options: BjxnetOptions,
) -> Iterator[tuple[Measured, Floats]]:
    """Scores of all files by networks that never saw a bug of the same project."""
    of = folds([one.example.project for one in learned], FOLDS)
    for fold in range(FOLDS):
        others = [one.example.bug for one in learned if of[one.example.project] != fold]
        network = _fit([examples[bug] for bug in others], options)
        start = time.perf_counter()
        own = [one for one in asked if of[one.example.project] == fold]
        for one in own:
            bug = bugs[one.example.bug]
            snapshot, files = trees.before(bug)
            report = report_words(query_of(bug.report))
            yield one, network.ranked(report, trees.graphs(snapshot, files))
        _tell(f"fold {fold}: {len(own)} bugs ranked", start)


def _fit(examples: Sequence[TrainingBug], options: BjxnetOptions) -> BjxNet:
    start = time.perf_counter()
    return fit(
        examples,
        epochs=options.epochs,
        seed=SEED,
        device=options.device,
        on_epoch=lambda epoch, loss: _tell(f"epoch {epoch}: loss {loss:.4f}", start),
    )


# -- Results -----------------------------------------------------------------------------------


def _tables(
    scored: Sequence[tuple[Measured, Floats]],
) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """bjXnet's and BM25's numbers on the same bugs, for all and for parts of them."""
    parts: dict[str, list[tuple[Measured, Floats]]] = {"all": list(scored)}
    for one, scores in scored:
        half = "held-out half" if held(one.example.bug) else "development half"
        named = "localized" if one.localized else "not localized"
        for part in (half, named):
            parts.setdefault(part, []).append((one, scores))
    return {
        part: {
            "bjxnet": table([ranked(scores, one.example.wanted) for one, scores in own]),
            "bm25": table([ranked(one.scores["bm25"], one.example.wanted) for one, _ in own]),
        }
        for part, own in sorted(parts.items())
    }


def _ship(network: BjxNet, projects: Mapping[str, int], options: BjxnetOptions) -> None:
    """Writes the weights, in half precision, with the card."""
    card = {
        "trained_on": {
            "data": "Denchmark (Kim et al., MSR 2021): bug reports of deep-learning projects",
            "bugs": sum(projects.values()),
            "projects": dict(sorted(projects.items())),
            "epochs": options.epochs,
        },
        "never": "Projects that are not named here; anything but Python; comments on the reports.",
        "measured": "bench/results/localization_bjxnet.json, by networks that left the project out",
    }
    said = np.frombuffer(json.dumps(card).encode(), np.uint8)
    np.savez_compressed(TARGET, allow_pickle=False, **network.arrays(), **{CARD: said})
    print(f"-> {TARGET} ({TARGET.stat().st_size} bytes)")


def _tell(what: str, start: float) -> None:
    print(f"{what}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
