"""How many faults of relations and between ranks the watcher names, with kind and line, and how early; and false roots.

A fault is ``named`` if it is the root cause, which is proved (``named_strictly`` without words that an expert could use instead);
``suspected`` if it is the suspect of a training without a root; ``shown`` if it is among the first `SHOWN` faults of the verdict.

Their collections, ``lab.watch.cases.PAIRED``, were written before the searches. Their held-out parts are read with
``--held-out``, which is counted in ``lab/watch/evaluations.json``. ``without_relations`` are the verdicts on the same records
without the tables of relations.

    python bench/watch_relations.py --records DIR [--held-out] [--collection NAME] [--ranks] [--misses] [--only TEXT]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import runpy
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import watch_runs
from common import rate, save
from watch import CUTS, Case
from watch_runs import recorded, stored_path

from epochzero import taxonomy
from epochzero.run.watch.child.begin import FILE_VARIABLE, begin_torch
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import CONFIRMED, TOLD, TrainingFinding
from epochzero.run.watch.verdict import conclude
from lab.watch.cases import (
    PAIRED,
    count_evaluation,
    pair_cases,
    pair_held_out,
    pair_programs,
    pair_ranks,
)

SHOWN = 3
_LIMIT_S = 900
_EARLY = 0.05


def main() -> None:
    """Runs what has no records, scores, stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True, help="directory that stores records")
    parser.add_argument("--held-out", action="store_true", help="also what is held out; is counted")
    parser.add_argument("--collection", choices=PAIRED, help="only these; has a result of its own")
    parser.add_argument("--ranks", action="store_true", help="only the trainings of several ranks")
    parser.add_argument("--misses", action="store_true", help="print what is missed")
    parser.add_argument("--only", default="", help="part of the name; stores no result")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cpu-s", type=int, default=watch_runs.CPU_S, help="of each training")
    parser.add_argument("--python", default=sys.executable, help="that has Keras and Transformers")
    options = parser.parse_args()
    watch_runs.CPU_S = options.cpu_s
    chosen = [
        case
        for case in cases()
        if (options.held_out or not case.held_out)
        and options.only in case.name
        and options.collection in (None, case.part)
    ]
    several = {
        case.name: ranks
        for part in PAIRED
        for name, ranks in pair_ranks(part).items()
        for case in chosen
        if case.name in (f"{part}/{name}", f"{part}/healthy/{name}")
    }
    options.records.mkdir(parents=True, exist_ok=True)
    alone = [case for case in chosen if case.name not in several and not options.ranks]
    for case, found in recorded(alone, options.records, options.jobs, options.python):
        print(case.name, "failed" if found is None else "recorded", file=sys.stderr)
    for case in chosen:
        if case.name in several:
            _record_ranks(case, several[case.name], options.records)
    numbers: dict[str, Counter[str]] = {}
    early: dict[str, list[float]] = {}
    evaluated = [case for case in chosen if stored_path(case, options.records).exists()]
    for case in evaluated:
        history = read_records(stored_path(case, options.records))
        for method in ("epochzero", "without_relations"):
            with _without_relations() if method != "epochzero" else contextlib.nullcontext():
                name = f"{method}/{case.part}{'/held_out' if case.held_out else ''}"
                misses = options.misses and method == "epochzero"
                counted, since = _counted(case, history, misses=misses)
                numbers.setdefault(name, Counter()).update(counted)
                early.setdefault(name, []).extend(since)
    result: dict[str, Any] = {
        name: _shares(of, early[name]) for name, of in sorted(numbers.items())
    }
    for name, of in result.items():
        print(name, of)
    count_evaluation("watch_relations", (case.name for case in evaluated if case.held_out))
    if not options.only and not options.ranks:
        name = f"watch_{options.collection or 'relations'}"
        data = {"name": "lab/watch", "programs": len(evaluated), "cpu_s": options.cpu_s}
        save(name, result, data=[data])


def cases() -> Iterator[Case]:
    """All trainings of the collections, faulty and healthy."""
    for part in PAIRED:
        held_out = pair_held_out(part)
        for name, path in pair_programs(part).items():
            text = path.read_text(encoding="utf-8")
            yield Case(f"{part}/healthy/{name}", part, text, held_out=name in held_out)
        for one in pair_cases(part):
            out = bool({one.name, one.about["base"]} & held_out)
            truth = one.about if "fault" in one.about else {}
            yield Case(one.id, part, one.faulty, truth, out)


def _record_ranks(case: Case, size: int, folder: Path) -> None:
    """Trains in several forks of this process, which has imported torch, as a launcher starts them."""
    stored = stored_path(case, folder)
    if stored.exists():
        return
    program = stored.with_suffix(".py")
    program.write_text(case.program, encoding="utf-8")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as work:
        begun = Path(work) / "watch.jsonl"
        port = 20000 + os.getpid() % 10000
        given = [(program, begun, rank, size, port) for rank in range(size)]
        processes = [context.Process(target=_train_rank, args=one) for one in given]
        for process in processes:
            process.start()
        for process in processes:
            process.join(_LIMIT_S)
            process.kill()
        failed = [process.exitcode for process in processes if process.exitcode]
        print(case.name, f"failed with {failed}" if failed else "recorded", file=sys.stderr)
        if not failed:
            for path in sorted(begun.parent.glob("watch*.jsonl"), reverse=True):
                path.replace(stored.with_name(stored.stem + path.name.removeprefix("watch")))


def _train_rank(program: Path, begun: Path, rank: int, size: int, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), FILE_VARIABLE: str(begun),
    }  # fmt: skip
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        begin_torch(torch, os.environ)
        from epochzero.run.watch.child import begin

        sys.argv = [str(program)]
        runpy.run_path(str(program), run_name="__main__")
        begin._begun[str(begun)].end()
    os._exit(0)


@contextlib.contextmanager
def _without_relations() -> Iterator[None]:
    """The catalogue as it is without the tables of relations."""
    with patch("epochzero.run.watch.faults.RELATIONS", ()):
        catalogue.cache_clear()
        yield
    catalogue.cache_clear()


def _counted(
    case: Case, history: TrainingHistory, *, misses: bool
) -> tuple[Counter[str], list[float]]:
    """What is to be counted of one training, and the share of it after which the fault is named."""
    watched = conclude(history)
    assert not watched.failed, (case.name, watched.failed)
    root = watched.root
    if not case.truth:
        if misses and root is not None:
            print("FALSE", case.name, root.word, root.text)
        confirmed = any(one.state == CONFIRMED for one in watched.findings)
        suspects = watched.suspect is not None
        return Counter(
            healthy=1, false_roots=root is not None, suspects=suspects, ended=confirmed
        ), []
    named = is_right(case, root)
    line = named and root is not None and has_line(case, root)
    strict_line = line and root is not None and has_line(case, root, strict=True)
    if misses and not line:
        found = root or watched.suspect
        said = f"{found.word} ({found.kind}) at {found.place}: {found.text}" if found else "nothing"
        print("kind" if named else "MISSED", case.name, case.truth["fault"], "said", said)
    since = []
    if named:
        at = (
            cut
            for cut in CUTS
            if is_right(case, conclude(history.until(int(cut * history.count))).root)
        )
        since.append(next(at, 1.0))
    strict = root is not None and root.word == case.truth["fault"]
    faults = [one for one in watched.findings if one.word in taxonomy.faults()]
    likely = [one for one in faults if one is root or one.confidence >= TOLD][:SHOWN]
    shown = [one for one in likely if is_right(case, one)]
    return Counter(
        faults=1,
        named=named,
        suspected=is_right(case, watched.suspect),
        shown=bool(shown),
        shown_with_line=any(has_line(case, one) for one in shown),
        named_strictly=strict,
        line=line,
        line_strictly=strict_line,
        wrong=root is not None and not named,
    ), since


def is_right(case: Case, root: TrainingFinding | None) -> bool:
    """Whether a root names the fault, or a word that an expert could name instead."""
    return root is not None and root.word in {case.truth["fault"], *case.truth.get("also", ())}


def has_line(case: Case, root: TrainingFinding, *, strict: bool = False) -> bool:
    """Whether the line of a root is one that a reader of the program would name.

    ``lines`` hold the fault; ``also_lines``, which few collections have, are those that could be named instead.
    """
    lines = case.program.splitlines()
    if root.place is None or root.place.line > len(lines):
        return False
    text = lines[root.place.line - 1]
    named = [*case.truth["lines"], *(() if strict else case.truth.get("also_lines", ()))]
    return any(fragment.splitlines()[0].strip() in text for fragment in named)


def _shares(found: Counter[str], early: Sequence[float]) -> dict[str, Any]:
    numbers: dict[str, Any] = dict(found)
    if count := found["faults"]:
        numbers["named_share"] = rate(found["named"], count)
        numbers["line_share"] = rate(found["line"], count)
        numbers["shown_share"] = rate(found["shown"], count)
        numbers["named_after_median"] = statistics.median(early) if early else None
        numbers["named_within_5_percent"] = sum(share <= _EARLY for share in early)
    if count := found["healthy"]:
        numbers["false_share"] = rate(found["false_roots"], count)
    return numbers


if __name__ == "__main__":
    main()
