"""Runs programs of the lab under the watcher, each in a fork of a process that has imported torch already.

Importing torch takes longer than most of these programs train. Programs that use Keras, Lightning or Transformers run
in a Python of their own, as of ``bench/watch.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import resource
import runpy
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import stand_ins
import torch
from public_trainings import PublicTraining
from watch import Case, Record, records_of_all

from epochzero.run.watch.child.begin import FILE_VARIABLE, begin_keras, begin_torch

CPU_S = 12
"""Of one core that a program may take; its records up to then are those of a training that goes on."""

_LIMIT_S = 300
_ALONE = ("keras", "lightning", "transformers")
_PRELOADED = ("numpy", "sklearn.datasets", "sklearn.model_selection", "sklearn.preprocessing")
_OF_PUBLIC = (
    "matplotlib.pyplot", "pandas", "gymnasium", "keras", "lightning.pytorch", "pytorch_lightning", "torch._dynamo", "torch_geometric.nn",
    "torch_geometric.datasets", "torch_geometric.loader",
)  # fmt: skip
"""Importing them takes longer than most of these programs may train."""


def recorded(
    cases: Iterable[Case], folder: Path, jobs: int, python: str = sys.executable
) -> Iterator[tuple[Case, list[Record] | None]]:
    """The records of each program as they come; None for one that failed. Stored for the same program."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = list(cases)
    public = any(isinstance(case, PublicTraining) for case in cases)
    if public:
        os.environ["KERAS_BACKEND"] = "torch"
        with contextlib.suppress(ImportError):
            stand_ins.import_torchvision()
    for name in (*_PRELOADED, *(_OF_PUBLIC if public else ())):
        with contextlib.suppress(ImportError):
            __import__(name)
    waiting, running = list(reversed(cases)), dict[int, _Run]()
    while waiting or running:
        while waiting and len(running) < jobs:
            run = _Run(waiting.pop(), folder, python)
            running[run.sentinel] = run
        for sentinel in wait(list(running), timeout=1.0):
            run = running.pop(sentinel)
            yield run.case, run.records()
        for run in running.values():
            run.kill_late()


def stored_path(case: Case, folder: Path) -> Path:
    """Of the records of a program: another text has another path."""
    digest = hashlib.sha256(case.program.encode()).hexdigest()[:12]
    return folder / f"{case.name.replace('/', '.')}.{digest}.jsonl"


class _Run:
    """One program in a fork. Forks are started by the main thread alone: a lock that another holds stays locked."""

    def __init__(self, case: Case, folder: Path, python: str) -> None:
        self.case = case
        self._stored = stored_path(case, folder)
        self._until = time.monotonic() + _LIMIT_S
        fork = multiprocessing.get_context("fork")
        self._child = fork.Process(target=_run, args=(case, self._stored, folder, python))
        self._child.start()

    @property
    def sentinel(self) -> int:
        return self._child.sentinel

    def kill_late(self) -> None:
        if time.monotonic() > self._until:
            self._child.kill()

    def records(self) -> list[Record] | None:
        self._child.join()
        if self._child.exitcode or not self._stored.exists():
            print(f"{self.case.name}: exit code {self._child.exitcode}", file=sys.stderr)
            return None
        return [json.loads(line) for line in self._stored.read_bytes().splitlines()]


def _run(case: Case, stored: Path, folder: Path, python: str) -> None:
    if stored.exists():
        return
    if isinstance(case, PublicTraining):
        _run_public(case, stored)
        return
    if any(f"import {name}" in case.program or f"from {name}" in case.program for name in _ALONE):
        records_of_all([case], folder, argparse.Namespace(jobs=1, python=python))
        return
    program = folder / f"{stored.stem}.py"
    program.write_text(case.program, encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        _train(program, stored, Path(work))


def _run_public(case: PublicTraining, stored: Path) -> None:
    # The source is read again when the records are.
    folder = stored.with_suffix(".source")
    shutil.rmtree(folder, ignore_errors=True)
    program = case.prepare(folder)
    backends = {"MPLBACKEND": "Agg", "KERAS_BACKEND": "torch", "DDE_BACKEND": "pytorch"}
    os.environ |= backends | {"HF_HUB_OFFLINE": "1"}
    stand_ins.install(case.program, program.parent)
    root = folder / "repository"
    sys.path[:0] = [str(program.parent), str(root), str(root / "src")]
    _train(program, stored, program.parent, case.arguments)


def _train(program: Path, stored: Path, work: Path, arguments: Sequence[str] = ()) -> None:
    """In the fork: the program as ``__main__``, watched from before its first line."""
    torch.set_num_threads(1)
    begun = stored.with_suffix(".begun")
    begun.unlink(missing_ok=True)
    with open(os.devnull, "w") as nowhere:
        os.chdir(work)
        os.dup2(nowhere.fileno(), 1)
        here: Any = None
        environment = os.environ | {FILE_VARIABLE: str(begun)}
        begin_torch(torch, environment)
        if "keras" in program.read_text(encoding="utf-8"):
            import keras

            begin_keras(keras, environment)
        from epochzero.run.watch.child import begin

        here = begin._begun[str(begun)]
        sys.argv = [str(program), *arguments]
        with contextlib.suppress(_Enough):
            signal.signal(signal.SIGXCPU, _enough)
            spent = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
            resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_S, resource.RLIM_INFINITY))
            with contextlib.suppress(SystemExit):
                runpy.run_path(str(program), run_name="__main__")
            here.end()
        begun.rename(stored)


class _Enough(BaseException):
    """What a program shows in its first seconds is measured; it is not ended by an error of its own."""


def _enough(*_: object) -> None:
    raise _Enough
