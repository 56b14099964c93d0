"""A second stage for files, as it was tried: does it help to look at what the likely functions call?

The first stage is the learned ranking. The second one orders its first 30 files again, by two kinds of
evidence: whether a file holds a callee, a caller or a base class of one of the 30 likeliest functions,
and the scores of the files that it calls, inherits from and imports, and the other way round. Only bugs of
projects that were not held out are used. Folds are whole projects, and the second stage learns from scores
of first stages that saw neither the bug's own fold nor the one that is tested. "control" is a second stage without
the new evidence, "joined" the first stage with the same evidence as more columns, passed on from the first guess.

    python bench/localization_second.py --repos DIR
"""

from __future__ import annotations

import argparse
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lightgbm
import numpy as np
import numpy.typing as npt
from common import SEED, save
from learning_to_rank import SETTINGS, Example, fit, folds
from localization import REPORTED, Options, options_of
from localization_measure import MENTIONS, keep
from localization_tables import against, show, table
from split import held

from epochzero.code import Cache, Repository
from epochzero.code.words import words
from epochzero.locate.corpus import Corpus
from epochzero.locate.features import features_of
from epochzero.locate.functions.context import FunctionContext, shares_of
from epochzero.locate.functions.table import FunctionTable
from epochzero.locate.mentions import mentions
from epochzero.locate.query import Query, query_of
from epochzero.locate.ranker import Trees, ranked
from epochzero.study.localization.bugs import BugCase, bugs_of, by_project, cases_of, clones
from epochzero.study.localization.ranks import Ranked
from epochzero.study.localization.ranks import ranked as ranks_of

Floats = npt.NDArray[np.float32]
Holders = Mapping[str, set[int]]

NEAR, FUNCTIONS, AGAIN = 60, 30, 30
"""Files whose relations are looked at, functions that lend evidence, and files that are ordered again."""
MOST_HOLDERS = 5
"""A name that more files define says nothing of which is meant."""
FOLDS = 4
ROUNDS = 150
OF_SECOND = {"feature_fraction": 0.5}
LINKS = ("calls", "called", "inherits", "base", "imports", "imported")
EVIDENCE = (
    "callee",
    "callee_of_named",
    "callee_with_words",
    "callee_of_frame",
    "caller",
    "base",
    "base_of_named",
    "base_with_method",
    "best_function",
    "functions",
)
BESIDE = (
    "guess",
    "bm25_whole_all",
    "unit_best_all",
    "frame_innermost",
    "path_in_text",
    "module_in_text",
    "walk",
    "bm25_card_summary",
    "similar_commits",
)
VARIANTS = {"control": (False, False), "evidence": (True, False), "both": (True, True)}
"""Second stages: with evidence of functions, with scores passed on."""
_CLASS = re.compile(r"^[ \t]*class\s+(\w+)\s*\(([^)]*)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """A bug with the relations of its likeliest files.

    Attributes:
        example: features of all files.
        localized: the report names a file that the fix changed.
        near: the likeliest files.
        links: how surely one of them relates to another, (near, near), by kind.
        evidence: of each of them, (near,), by name.
    """

    example: Example
    localized: bool
    near: npt.NDArray[np.int64]
    links: Mapping[str, Floats]
    evidence: Mapping[str, Floats]


def main() -> None:
    """Measures, prints the tables and keeps them."""
    options = options_of(argparse.ArgumentParser(description=__doc__), "localization_second")
    bugs = [bug for found in _projects(options) for bug in found]
    ranks = _ranks(bugs)
    tables = {}
    for part in ("all", "not localized"):
        chosen = [n for n, bug in enumerate(bugs) if part == "all" or not bug.localized]
        tables[part] = {name: table([own[n] for n in chosen]) for name, own in ranks.items()}
        show(part, tables[part])
    projects = [bug.example.project for bug in bugs]
    compared = {name: against(name, ranks, projects) for name in ("both", "joined")}
    for name, others in compared.items():
        for other, numbers in others.items():
            print(name, "against", other, numbers)
    save(
        options.out,
        {"bugs": len(bugs), "projects": sorted(set(projects)), "tables": tables}
        | {f"{name}_against": others for name, others in compared.items()},
        data=[options.data.described()],
    )


# -- Relations -----------------------------------------------------------------------------------


def _projects(options: Options) -> Iterator[list[Related]]:
    """Yield the bugs of each project that has a clone and is not held out; stored results are reused."""
    found = clones(options.repos)
    for project, bugs in sorted(by_project(bugs_of(options.data.records)).items()):
        if project.lower() in found and not (held(project) and project in REPORTED):
            path = options.kept / f"{project}.related.pickle"
            if not path.exists():
                cache = Cache(options.work / "cache" / project)
                cases = cases_of(bugs, Repository(found[project.lower()]), cache)
                keep(path, [_related(case) for case in cases if isinstance(case, BugCase)])
            related: list[Related] = pickle.loads(path.read_bytes())
            yield related


def _related(case: BugCase) -> Related:
    corpus, query = case.corpus, query_of(case.bug.report)
    names, values = features_of(query, corpus)
    guess = values[:, names.index("guess")]
    near = np.argsort(-guess, kind="stable")[:NEAR]
    place = {int(document): n for n, document in enumerate(near)}
    holders: defaultdict[str, set[int]] = defaultdict(set)
    for document, parsed in enumerate(corpus.parsed):
        for unit in parsed.units:
            holders[unit.name].add(document)
    bases = _bases(corpus, place)
    named = values[list(case.wanted)][:, [names.index(name) for name in MENTIONS]]
    return Related(
        Example(case.bug.report.id, case.bug.project, names, values, case.wanted),
        bool((named > 0).any()),
        near,
        _links(corpus, place, holders, bases),
        _evidence(query, corpus, shares_of(guess), place, holders, bases),
    )


def _bases(corpus: Corpus, place: Mapping[int, int]) -> Mapping[int, Mapping[str, Sequence[str]]]:
    """The names of the base classes of each class, by file."""
    paths = {corpus.paths[document] for document in place}
    assert corpus.snapshot is not None
    wanted = [file for file in corpus.snapshot.files if file.path in paths]
    return {
        corpus.number[file.path]: {
            name: [
                base.strip().rpartition(".")[2]
                for base in given.split(",")
                if base.strip() and "=" not in base
            ]
            for name, given in _CLASS.findall(content.decode("utf-8", "replace"))
        }
        for file, content in corpus.snapshot.read(wanted)
    }


def _links(
    corpus: Corpus,
    place: Mapping[int, int],
    holders: Holders,
    bases: Mapping[int, Mapping[str, Sequence[str]]],
) -> Mapping[str, Floats]:
    links = {kind: np.zeros((len(place), len(place)), np.float32) for kind in LINKS}

    def add(kind: str, back: str, source: int, target: int, weight: float) -> None:
        if target in place:
            pair = place[source], place[target]
            links[kind][pair] = max(float(links[kind][pair]), weight)
            links[back][pair[::-1]] = max(float(links[back][pair[::-1]]), weight)

    for document in place:
        for target in corpus.imports[document]:
            add("imports", "imported", document, target, 1.0)
        for name in set(corpus.parsed[document].called):
            defined = holders.get(name, set())
            if 0 < len(defined) <= MOST_HOLDERS and document not in defined:
                for target in defined:
                    add("calls", "called", document, target, 1 / len(defined))
        for base in {base for given in bases.get(document, {}).values() for base in given}:
            elsewhere = holders.get(base, set()) - {document}
            if len(elsewhere) <= MOST_HOLDERS:
                for target in elsewhere:
                    add("inherits", "base", document, target, 1.0)
    return links


def _evidence(
    query: Query,
    corpus: Corpus,
    files: Floats,
    place: Mapping[int, int],
    holders: Holders,
    bases: Mapping[int, Mapping[str, Sequence[str]]],
) -> Mapping[str, Floats]:
    """What the likeliest functions say of the files of what they call and inherit from."""
    functions = FunctionTable(corpus)
    context = FunctionContext(functions, query, corpus, files, mentions(query, corpus))
    likely = np.argsort(-context.guess, kind="stable")[:FUNCTIONS].tolist()
    best = float(context.guess.max(initial=0.0)) or 1.0
    found = {name: np.zeros(len(place), np.float32) for name in EVIDENCE}
    asked, told = set(query.identifiers["all"]), set(query.words["all"])
    likely_names: defaultdict[str, float] = defaultdict(float)

    def add(name: str, document: int, value: float) -> None:
        if document in place:
            found[name][place[document]] = max(float(found[name][place[document]]), value)

    for row in likely:
        unit, document = functions.units[row], int(functions.document[row])
        share = float(context.guess[row]) / best
        likely_names[unit.name] = max(likely_names[unit.name], share)
        add("best_function", document, share)
        if document in place:
            found["functions"][place[document]] += 1
        for name in functions.called(row):
            defined = holders.get(name, set())
            if not 0 < len(defined) <= 8:
                continue
            own = words(name)
            common = sum(word in told for word in own) / max(1, len(own))
            for target in defined - {document}:
                value = share / len(defined)
                add("callee", target, value)
                if unit.name in asked:
                    add("callee_of_named", target, value)
                if row in context.framed_by_name:
                    add("callee_of_frame", target, value / context.framed_by_name[row])
                add("callee_with_words", target, value * common)
        around = unit.qualified.split(".")[0] if "." in unit.qualified else ""
        for base in bases.get(document, {}).get(around, ()):
            elsewhere = holders.get(base, set()) - {document}
            for target in elsewhere if len(elsewhere) <= MOST_HOLDERS else ():
                add("base", target, share / len(elsewhere))
                if around in asked or unit.name in asked:
                    add("base_of_named", target, share / len(elsewhere))
                if any(other.name == unit.name for other in corpus.parsed[target].units):
                    add("base_with_method", target, share / len(elsewhere))
    for document in place:
        for name in set(corpus.parsed[document].called) & likely_names.keys():
            if document not in holders[name]:
                add("caller", document, likely_names[name] / len(holders[name]))
    return found


# -- Ranks ---------------------------------------------------------------------------------------


def _ranks(bugs: Sequence[Related]) -> dict[str, list[Ranked]]:
    """The ranks of each bug by each variant, by models that never saw its project."""
    of = folds([bug.example.project for bug in bugs], FOLDS)
    fold = [of[bug.example.project] for bug in bugs]
    joined = [_joined(bug) for bug in bugs]
    models: dict[frozenset[int], Trees] = {}
    for one in range(FOLDS):
        for other in range(one, FOLDS):
            out = frozenset((one, other))
            models[out] = fit([b.example for b, f in zip(bugs, fold, strict=True) if f not in out])
    scores: dict[str, dict[int, Floats]] = {n: {} for n in ("first", "joined", *VARIANTS)}
    for tested in range(FOLDS):
        first = [
            ranked(models[frozenset((tested, f))], bug.example.names, bug.example.table)
            for bug, f in zip(bugs, fold, strict=True)
        ]
        learned = [n for n, f in enumerate(fold) if f != tested]
        asked = [n for n, f in enumerate(fold) if f == tested]
        model = fit([joined[n] for n in learned])
        for n in asked:
            scores["first"][n] = first[n]
            scores["joined"][n] = ranked(model, joined[n].names, joined[n].table)
        for name, parts in VARIANTS.items():
            second = _second([(bugs[n], first[n]) for n in learned], *parts)
            for n in asked:
                rows, columns = _table(bugs[n], first[n], *parts)
                scores[name][n] = first[n] - np.float32(1e6)
                scores[name][n][rows] = np.asarray(second.predict(columns), np.float32)
        print("fold", tested + 1, "of", FOLDS, flush=True)
    return {
        name: [ranks_of(found[n], bug.example.wanted) for n, bug in enumerate(bugs)]
        for name, found in scores.items()
    }


def _second(
    learned: Sequence[tuple[Related, Floats]], evidence: bool, passed_on: bool
) -> lightgbm.Booster:
    tables, labels = [], []
    for bug, scores in learned:
        rows, columns = _table(bug, scores, evidence, passed_on)
        wanted = np.isin(rows, bug.example.wanted)
        if wanted.any():
            tables.append(columns)
            labels.append(wanted.astype(np.int8))
    data = lightgbm.Dataset(
        np.concatenate(tables), np.concatenate(labels), group=[len(own) for own in labels]
    )
    return lightgbm.train(SETTINGS | OF_SECOND | {"seed": SEED}, data, ROUNDS)


def _table(
    bug: Related, scores: Floats, evidence: bool, passed_on: bool
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The first files of a first stage, and their columns in the second."""
    rows = np.argsort(-scores, kind="stable")[:AGAIN]
    own = shares_of(scores[rows])
    place = {int(document): n for n, document in enumerate(bug.near)}
    at = np.array([place.get(int(row), -1) for row in rows])
    columns = [own, np.arange(len(own)), own - np.append(own[1:], own[-1]), own[0] - own]
    columns += [bug.example.table[rows, bug.example.names.index(name)] for name in BESIDE]
    if evidence:
        columns += [np.where(at >= 0, bug.evidence[name][at], 0) for name in EVIDENCE]
    if passed_on:
        here = np.maximum(at, 0)
        known = (at >= 0)[:, None] & (at >= 0)[None, :]
        for kind in LINKS:
            columns += _passed(bug.links[kind][np.ix_(here, here)] * known, own)
    return rows, np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def _passed(links: Floats, scores: Floats) -> list[Floats]:
    """Of each file the best score of those that it relates to, their mean, and the best above its own."""
    links = links * (1 - np.eye(len(links), dtype=np.float32))
    given = links * scores[None, :]
    above = scores[None, :] > scores[:, None]
    total = np.maximum(1, links.sum(axis=1))
    return [given.max(axis=1), given.sum(axis=1) / total, (given * above).max(axis=1)]


def _joined(bug: Related) -> Example:
    """The first stage's example with the evidence, and the first guess passed on, as more columns."""
    example = bug.example
    guess = example.table[bug.near, example.names.index("guess")]
    more = dict(bug.evidence)
    for kind in LINKS:
        best, _, above = _passed(bug.links[kind], guess)
        more |= {f"{kind}_best": best, f"{kind}_above": above}
    table = np.zeros((len(example.table), len(more)), np.float32)
    table[bug.near] = np.stack(list(more.values()), axis=1)
    return Example(
        example.bug,
        example.project,
        (*example.names, *(f"related_{name}" for name in more)),
        np.concatenate([example.table, table], axis=1),
        example.wanted,
    )


if __name__ == "__main__":
    main()
