"""Which leaf of the taxonomy of real faults is caught by what, and which by nothing.

`epochzero model mutate` brings each leaf that can be injected into programs of ``lab/watch/base``, those that
are not held out, and one of ``bench/leaves``, and three ways of looking are asked: `check` reads the mutant; a watched training runs it
to its end (`epochzero.watch`, with the detectors of `run --watch`); `check --dry` runs it where it does not come
to its end by itself, or needs a GPU, which is where a dry run has something to say. Caught: at least one finding that the
healthy program does not have. Named: a rule, or the root fault, is one that the taxonomy names for the leaf;
any failure counts as named by a dry run. At the line: a finding stands where the program was changed.

A mutant that trains as well as before is one too: a change of this kind is not always a fault that hurts. So
the share of silent ones is no rate of misses.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import math
import multiprocessing
import os
import random
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import sklearn.datasets  # noqa: F401 - a mutant that runs in a copy of this process need not load it again
import torch
from common import REPOSITORY, RESULTS, SEED, commit, measured_paths, save

import epochzero
from epochzero import taxonomy
from epochzero.check.dryrun.contain.model import Limits
from epochzero_models.mutate import Mutant, NoPlaceError, injectable, mutate

sys.path.insert(0, str(REPOSITORY))
from lab.watch.cases import WATCH, held_out_bases

BASES = (
    "iris_softmax", "breast_cancer_mlp", "spirals_mlp", "digits_cnn", "sines_lstm",
    "checker_deepmlp", "waves_conv1d", "pairs_siamese", "genes_wide", "bandit_policy", "text_charlm", "devices",
)  # fmt: skip
"""Quick ones first; the last one, of ``bench/leaves``, has places for leaves that need a GPU, images or a checkpoint."""
TARGETS = {"devices": "T4"}
"""What a program is checked for; its dry run simulates that GPU."""
LIMIT_S = 120
"""Of the processor, since others may keep the machine busy."""
PATIENCE = 10
"""How often this limit goes into the time that is waited."""
MEMORY = 24 << 30
"""Address space that a mutant may take."""
KEPT_AFTER = 5
"""Mutants, so that what breaks off can be gone on with."""
Key = tuple[str, str, int]
"""Leaf, base and line of a mutant."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one way of looking says of a program."""

    caught: bool = False
    named: bool = False
    at_line: bool = False
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """One mutant and what was said of it."""

    leaf: str
    base: str
    line: int
    ended: str
    check: Answer
    dry: Answer | None
    watch: Answer
    commit: str
    """That said so."""

    @property
    def mutant(self) -> Key:
        """Which one it is."""
        return self.leaf, self.base, self.line


@dataclass(frozen=True, slots=True)
class Healthy:
    """What is said of a base, which no mutant of it is given credit for."""

    rules: frozenset[str]
    root: str


def main() -> None:
    """Tries the mutants, prints the table, and keeps it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=3, metavar="N", help="at most, of each leaf")
    parser.add_argument("--minutes", type=float, default=120, help="after which no mutant is begun")
    parser.add_argument("--only", nargs="*", default=[], metavar="LEAF", help="keeps no result")
    parser.add_argument(
        "--go-on", action="store_true", help="with what the kept result has not tried"
    )
    parser.add_argument(
        "--stale", action="store_true", help="with --go-on: try again what other code has tried"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants at a time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ends = time.monotonic() + 60 * options.minutes
    mutants = [each for each in _mutants(options.mutants) if not options.only or each[1].leaf in options.only]  # fmt: skip
    known = _kept(options.stale) if options.go_on else {}
    tried = [known[key] for each in mutants if (key := _key(*each)) in known]
    waiting = [each for each in mutants if _key(*each) not in known]
    print(f"{len(waiting)} of {len(mutants)} mutants are to be tried", file=sys.stderr, flush=True)
    began = time.monotonic()
    for number, one in enumerate(_all_tried(waiting, options.jobs, ends), 1):
        tried.append(one)
        minutes = (time.monotonic() - began) / 60
        left = minutes / number * (len(waiting) - number)
        print(f"{number} of {len(waiting)} in {minutes:.1f} min, about {left:.0f} min left: {_told(one)}", file=sys.stderr, flush=True)  # fmt: skip
        if not options.only and not number % KEPT_AFTER:
            _keep(tried, len(mutants))
    if missing := len(mutants) - len(tried):
        print(f"{missing} of {len(mutants)} mutants are not tried: the time is over")
    _print(_numbers(tried))
    if not options.only:
        _keep(tried, len(mutants))


def _all_tried(waiting: Sequence[tuple[str, Mutant]], jobs: int, ends: float) -> Iterator[Tried]:
    """Several at a time, as they come; those that would begin too late are left out."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        begun = [pool.submit(_tried, *each, ends) for each in waiting]
        for future in as_completed(begun):
            if (one := future.result()) is not None:
                yield one


def _kept(stale: bool) -> dict[Key, Tried]:
    """What the kept result has tried; where stale ones are to be tried again, without what other code has tried."""
    kept = json.loads((RESULTS / "models_leaves.json").read_text(encoding="utf-8"))
    commit = kept["versions"]["epochzero_commit"]
    found = [_read({"commit": commit} | one) for one in kept["numbers"]["mutants_tried"]]
    current = {one.commit: not stale or _same_code(one.commit) for one in found}
    return {one.mutant: one for one in found if current[one.commit]}


def _same_code(commit: str) -> bool:
    """Whether the measured packages are those of a commit, which need not exist any more."""
    paths = measured_paths("models_leaves")
    command = ("git", "-C", str(REPOSITORY), "diff", "--quiet", commit, "--", *paths)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _read(one: dict[str, Any]) -> Tried:
    ways = {way: Answer(**one[way]) if one[way] else None for way in ("check", "dry", "watch")}
    return Tried(**one | ways)


def _keep(tried: list[Tried], planned: int) -> None:
    bases = {one.base for one in tried}
    commits = Counter(one.commit for one in tried)
    data = [{"name": "lab/watch/base, open half, and bench/leaves", "programs": len(bases), "mutants": len(tried), "planned": planned, "by_commit": commits}]  # fmt: skip
    save("models_leaves", _numbers(tried), data=data, rivals={"torch": importlib.metadata.version("torch")})  # fmt: skip


def _key(base: str, mutant: Mutant) -> Key:
    return mutant.leaf, base, mutant.line


def _mutants(most: int) -> Iterator[tuple[str, Mutant]]:
    """One of each leaf, then a second of each, in another base, and so on."""
    held = held_out_bases()
    assert not held & set(BASES)
    programs = {base: _program(base) for base in BASES}
    of_leaf: dict[str, list[tuple[str, Mutant]]] = {leaf: [] for leaf in injectable()}
    for leaf, found in of_leaf.items():
        for base, program in programs.items():
            with contextlib.suppress(NoPlaceError):
                found.append((base, mutate(program, leaf, seed=SEED)))
    order = random.Random(SEED).sample(list(of_leaf.values()), len(of_leaf))
    for turn in range(most):
        of_turn = (found[turn] for found in order if turn < len(found))
        # Those of quick programs first, so that little time comes to many leaves.
        yield from sorted(of_turn, key=lambda each: BASES.index(each[0]))


def _program(base: str) -> str:
    folder = WATCH / "base" if base not in TARGETS else Path(__file__).parent / "leaves"
    return (folder / f"{base}.py").read_text(encoding="utf-8")


@cache
def _healthy(base: str) -> Healthy:
    with _folder(_program(base)) as folder:
        checked = epochzero.check(
            [sys.executable, "train.py"], folder=folder, target=TARGETS.get(base),
            dry=Limits(seconds=PATIENCE * LIMIT_S) if base in TARGETS else None,
        )  # fmt: skip
        _, root = _watched(folder)
    return Healthy(frozenset(one.rule for one in checked.findings), root.get("word", ""))


def _tried(base: str, mutant: Mutant, ends: float) -> Tried | None:
    """What is said of a mutant; None where the time is over."""
    if time.monotonic() > ends:
        return None
    healthy = _healthy(base)
    leaf = taxonomy.leaves()[mutant.leaf]
    with _folder(mutant.text) as folder:
        target = TARGETS.get(base)
        check = _checked(folder, mutant, healthy, target, frozenset(leaf.check))
        ended, root = _watched(folder)
        word = root.get("word", "")
        new = bool(word) and word != healthy.root
        watch = Answer(
            new, new and word in leaf.watch, new and root["line"] in _lines(mutant), (word,) * new
        )
        dry = None
        if target or ended not in ("well", "late"):
            dry = _checked(folder, mutant, healthy, target, None)
    return Tried(mutant.leaf, base, mutant.line, ended, check, dry, watch, commit())


def _checked(folder: Path, mutant: Mutant, healthy: Healthy, target: str | None, wanted: frozenset[str] | None) -> Answer:  # fmt: skip
    """What reading says, or where no rules are wanted, what running dry says."""
    limits = None if wanted is not None else Limits(seconds=PATIENCE * LIMIT_S)
    checked = epochzero.check(
        [sys.executable, "train.py"],
        folder=folder,
        target=target,
        environment=os.environ,
        dry=limits,
    )
    found = [one for one in checked.findings if one.rule not in healthy.rules]
    if wanted is None:
        found = [one for one in found if one.rule.startswith("dry-run-")]
    lines = {one.place.line for one in found if one.place is not None}
    rules = tuple(sorted({one.rule for one in found}))
    named = bool(found) if wanted is None else bool(wanted & set(rules))
    return Answer(bool(found), named, bool(lines & _lines(mutant)), rules)


def _lines(mutant: Mutant) -> frozenset[int]:
    """Of the change in the mutant; where lines were taken away, those beside them."""
    count = len(mutant.new.split("\n"))
    return frozenset(range(mutant.line - (not mutant.new), mutant.line + count))


@contextlib.contextmanager
def _folder(program: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="leaves-") as scratch:
        folder = Path(scratch)
        (folder / "train.py").write_text(program, encoding="utf-8")
        yield folder


# -- The watched training, in a copy of this process that has torch already -----------------------


def _watched(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """How the training ended (well, late, or with which exception), and the root fault, if any."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_train, args=(folder, theirs))
    process.start()
    theirs.close()
    answered = ours.poll(PATIENCE * LIMIT_S)
    try:
        ended, root = ours.recv() if answered else ("late", {})
    except EOFError:
        process.join()
        ended, root = "late" if process.exitcode == -signal.SIGXCPU else "killed", {}
    process.kill()
    process.join()
    return ended, root


def _train(folder: Path, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT_S, used + LIMIT_S + 1))
    os.chdir(folder)
    sys.argv = ["train.py"]
    ended = "well"
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        watching = epochzero.watch()
        try:
            runpy.run_path("train.py", run_name="__main__")
        except BaseException as error:
            ended = type(error).__name__
        watching.close()
        root = watching.watched.root
    line = root.place.line if root is not None and root.place is not None else 0
    answer.send((ended, {"word": root.word, "line": line} if root is not None else {}))


# -- The table ---------------------------------------------------------------------------------


def _numbers(tried: list[Tried]) -> dict[str, Any]:
    leaves = {leaf: _of_leaf([one for one in tried if one.leaf == leaf]) for leaf in injectable()}
    with_mutant = {leaf: row for leaf, row in leaves.items() if row["mutants"]}
    return {
        "leaves": len(taxonomy.leaves()),
        "injectable": len(injectable()),
        "with_mutant": len(with_mutant),
        "mutants": len(tried),
        "caught_by": {
            way: sum(row[way]["caught"] > 0 for row in with_mutant.values())
            for way in ("check", "dry", "watch")
        },
        "caught_by_nothing": [leaf for leaf, row in with_mutant.items() if not row["by_anything"]],
        "not_tried": [leaf for leaf, row in leaves.items() if not row["mutants"]],
        "by_leaf": with_mutant,
        "mutants_tried": [asdict(one) for one in tried],
    }


def _of_leaf(tried: list[Tried]) -> dict[str, Any]:
    def counted(answers: list[Answer]) -> dict[str, int]:
        return {what: sum(getattr(each, what) for each in answers) for what in ("caught", "named", "at_line")}  # fmt: skip

    caught = [one for one in tried if one.check.caught or one.watch.caught or (one.dry and one.dry.caught)]  # fmt: skip
    return {
        "mutants": len(tried),
        "fail_by_themselves": sum(one.ended not in ("well", "late") for one in tried),
        "by_anything": len(caught),
        "check": counted([one.check for one in tried]),
        "dry": counted([one.dry for one in tried if one.dry is not None]),
        "watch": counted([one.watch for one in tried]),
    }


def _told(one: Tried) -> str:
    ways = {"check": one.check, "dry": one.dry, "watch": one.watch}
    said = [f"{way} {', '.join(each.said)}" for way, each in ways.items() if each and each.caught]
    return f"{one.leaf} in {one.base}, ended {one.ended}: {'; '.join(said) or 'nothing'}"


def _print(numbers: Mapping[str, Any]) -> None:
    print(f"{'leaf':<44}{'n':>3}{'fail':>6}{'check':>7}{'dry':>5}{'watch':>7}")
    for leaf, row in numbers["by_leaf"].items():
        counts = (row[way]["caught"] for way in ("check", "dry", "watch"))
        print(f"{leaf:<44}{row['mutants']:>3}{row['fail_by_themselves']:>6}" + "{:>7}{:>5}{:>7}".format(*counts))  # fmt: skip
    print(json.dumps({key: value for key, value in numbers.items() if key not in ("by_leaf", "mutants_tried")}))  # fmt: skip


if __name__ == "__main__":
    main()
