"""Python imports this before the first line of a job: watching begins as soon as torch or keras is imported.

Its folder is the first of PYTHONPATH when `epochzero run --watch` starts the job. It needs nothing but the
standard library until then, and it never keeps a job from running.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType

FILE_VARIABLE = "EPOCHZERO_WATCH_FILE"
_PACKAGES = ("epochzero", "epochzero.run", "epochzero.run.watch", "epochzero.run.watch.child")


def _next_of_the_same_name() -> None:
    """Runs the sitecustomize that this one stands before."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _find_ourselves() -> None:
    """Makes our package importable in a Python that has none."""
    if importlib.util.find_spec("epochzero") is not None:
        return
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in reversed(_PACKAGES):
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = os.path.dirname(folder)


class _AfterImport:
    """A finder of modules that begins to watch when torch or keras has been imported."""

    def __init__(self) -> None:
        self._left = {"torch": _begin_torch, "keras": _begin_keras}

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        begin = self._left.pop(name, None)
        if begin is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_watch(module: ModuleType) -> None:
            run(module)
            try:
                _find_ourselves()
                begin(module)
            except Exception as error:
                print(f"epochzero: the training is not watched: {error!r}", file=sys.stderr)

        spec.loader.exec_module = run_and_watch  # type: ignore[method-assign]
        return spec


def _begin_torch(_: ModuleType) -> None:
    from epochzero.run.watch.child.begin import begin

    begin(os.environ[FILE_VARIABLE], os.environ)


def _begin_keras(keras: ModuleType) -> None:
    from epochzero.run.watch.child.begin import begin_keras

    begin_keras(keras, os.environ[FILE_VARIABLE], os.environ)


if os.environ.get(FILE_VARIABLE):
    sys.meta_path.insert(0, _AfterImport())  # type: ignore[arg-type]
_next_of_the_same_name()
