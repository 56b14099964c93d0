"""What the localization benchmark computes for one project, and how it is kept.

Features and scores are kept in one file a method, so that a method that is new or has changed costs
only itself.
"""

from __future__ import annotations

import pickle
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from learning_to_rank import Example
from localization_data import Measured, knows_fix

from epochzero.code import Cache, History, Repository, parse_snapshot
from epochzero.locate import METHODS
from epochzero.locate.corpus import Corpus, searched
from epochzero.locate.features import features_of
from epochzero.locate.query import Query, query_of
from epochzero.locate.ranker import LEARNED
from epochzero.locate.techniques import TECHNIQUES
from epochzero.locate.techniques.combined import COMBINED
from epochzero.study.localization.bugs import PYTHON, Bug, BugCase, Tree, cases_of

__all__ = ["Job", "Project", "keep", "measured_project"]

Floats = npt.NDArray[np.float32]
Kept = Mapping[str, Floats]

MENTIONS = ("frame_innermost", "path_in_text", "path_in_title", "module_in_text")
"""Features that are positive where the report names the file."""
FORMAT = 5
"""Goes up when what is kept of a project changes."""


@dataclass(frozen=True, slots=True)
class Project:
    """What was computed for a project.

    Attributes:
        project: ``owner+name``.
        measured: its bugs.
        lost: why a bug could not be looked for.
        speed: seconds to the first answer from nothing and to the next, by method.
        memory_mb: the most that the process held.
    """

    project: str
    measured: tuple[Measured, ...]
    lost: tuple[str, ...]
    speed: Mapping[str, tuple[float, float]]
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be computed for a project, and where it is kept; ``methods`` are techniques."""

    project: str
    bugs: Sequence[Bug]
    clone: Path
    work: Path
    cache: Path
    tree: Tree
    methods: tuple[str, ...]

    def kept(self, part: str) -> Path:
        """The file of one method, or of the features."""
        return self.work / f"{self.project}.{self.tree}.{part}.{FORMAT}.pickle"


def measured_project(job: Job) -> Project:
    """The bugs of one project: what is not kept is computed."""
    missing = [name for name in job.methods if not job.kept(name).exists()]
    if missing or not job.kept("features").exists():
        _compute(job, missing)
    project: Project = pickle.loads(job.kept("features").read_bytes())
    kept: dict[str, tuple[Kept, tuple[float, float]]] = {
        name: pickle.loads(job.kept(name).read_bytes()) for name in job.methods
    }
    measured = [
        replace(m, scores={name: scores[m.example.bug] for name, (scores, _) in kept.items()})
        for m in project.measured
    ]
    speed = {name: taken for name, (_, taken) in kept.items()}
    return replace(project, measured=tuple(measured), speed={**project.speed, **speed})


def _compute(job: Job, missing: Sequence[str]) -> None:
    """Scores by the methods that are missing, and the features where they are."""
    repository = Repository(job.clone)
    featured = not job.kept("features").exists()
    scores: dict[str, dict[str, Floats]] = {name: {} for name in missing}
    measured, lost = [], []
    last: BugCase | None = None
    start = time.perf_counter()
    for case in cases_of(job.bugs, repository, Cache(job.cache / job.project), job.tree):
        if isinstance(case, str):
            lost.append(case)
        else:
            taken = time.perf_counter() - start
            query, last = query_of(case.bug.report), case
            if featured:
                measured.append(_measure(case, query, taken))
            for name in missing:
                scores[name][case.bug.report.id] = (
                    TECHNIQUES[name].make().scores(query, case.corpus)
                )
        start = time.perf_counter()
    own = (LEARNED, COMBINED) if featured else ()
    speed = _speed(repository, last, (*own, *missing)) if last else {}
    for name in missing:
        keep(job.kept(name), (scores[name], speed.get(name, (0.0, 0.0))))
    if featured:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        of_own = {name: speed[name] for name in own if name in speed}
        project = Project(job.project, tuple(measured), tuple(lost), of_own, round(memory, 1))
        keep(job.kept("features"), project)


def keep(path: Path, what: object) -> None:
    """Writes what was computed; the file is whole or not there."""
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(what))
    partial.rename(path)


def _measure(case: BugCase, query: Query, seconds: float) -> Measured:
    start = time.perf_counter()
    names, values = features_of(query, case.corpus)
    taken = time.perf_counter() - start
    wanted = list(case.wanted)
    named = values[wanted][:, [names.index(name) for name in MENTIONS]]
    held = case.corpus.find(query).fields["whole"][wanted] > 0
    label = case.bug.raw.get("label") or {}
    return Measured(
        Example(case.bug.report.id, case.bug.project, names, values, case.wanted),
        {},
        bool((named > 0).any()),
        knows_fix(case.bug.report.text),
        label.get("type", ""),
        label.get("extrinsic"),
        tuple(case.bug.raw["project_class"]),
        tuple(case.corpus.paths[number] for number in wanted),
        float(held.mean(axis=1).max()) if query.terms else 0.0,
        (seconds, taken),
    )


def _speed(
    repository: Repository, case: BugCase, methods: Sequence[str]
) -> Mapping[str, tuple[float, float]]:
    """Seconds to the first answer, nothing being kept, and to the next, by method.

    The first parses every file and reads the history, whether the method asks for it or not.
    """
    start = time.perf_counter()
    snapshot = repository.snapshot(case.tree)
    files = searched(snapshot, languages=PYTHON)
    parsed = parse_snapshot(snapshot, files, None, 1)
    history = History(repository, case.tree)
    read = time.perf_counter() - start
    found = {}
    for name in methods:
        method = METHODS[name]()
        taken = []
        start = time.perf_counter()
        corpus = Corpus([file.path for file in files], parsed, history, case.corpus.past)
        for _ in range(2):
            method.scores(query_of(case.bug.report), corpus)
            taken.append(time.perf_counter() - start)
            start = time.perf_counter()
        found[name] = (round(read + taken[0], 4), round(taken[1], 4))
    return found
