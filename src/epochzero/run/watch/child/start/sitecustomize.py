"""Python imports this before the first line of a job: watching begins as soon as torch or keras is imported.

Its folder is the first of PYTHONPATH when `epochzero run --watch` starts the job. It needs nothing but the
standard library until then, and it never keeps a job from running. How far it came stands in the file
beside the records: python, torch, keras, or why it failed.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

FILE_VARIABLE = "EPOCHZERO_WATCH_FILE"
SEEN_SUFFIX = ".seen"
_HERE = os.path.dirname(os.path.abspath(__file__))
_LAUNCHERS = frozenset(
    (
        "torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate",
        "accelerate.commands.launch", "deepspeed", "deepspeed.launcher.runner",
        "deepspeed.launcher.launch", "horovodrun", "fabric", "composer",
    )
)  # fmt: skip
"""Programs that start a training's ranks with a copy of their own variables."""
_PACKAGES = ("epochzero", "epochzero.run", "epochzero.run.watch", "epochzero.run.watch.child")


def _next_of_the_same_name() -> None:
    """Runs the sitecustomize that this one stands before."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _hide_ourselves() -> None:
    """The job reads PYTHONPATH as it was; the programs that it starts still get it with us in front."""
    started = getattr(sys, "orig_argv", [])[:4]
    if not _LAUNCHERS.isdisjoint(os.path.basename(word) for word in started):
        return
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    left = os.pathsep.join(path for path in paths if os.path.abspath(path) != _HERE)
    # Only what this process reads: what a child inherits is kept by the system.
    variables: dict[object, object] = getattr(os.environ, "_data", {})
    name: object = os.environ.encodekey("PYTHONPATH")
    if left:
        variables[name] = os.environ.encodevalue(left)
    else:
        variables.pop(name, None)


def _seen(what: str) -> None:
    """Leaves a word beside the records."""
    try:
        with open(os.environ[FILE_VARIABLE] + SEEN_SUFFIX, "a", encoding="utf-8") as file:
            file.write(what + "\n")
    except OSError:
        pass


@contextmanager
def _ourselves() -> Iterator[None]:
    """Within it our package is what is imported; the job's Python may have none, or another version."""
    theirs = {name: sys.modules.pop(name) for name in _PACKAGES if name in sys.modules}
    folder = os.path.dirname(_HERE)
    for name in reversed(_PACKAGES):
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = os.path.dirname(folder)
    try:
        yield
    finally:
        for name in _PACKAGES:
            del sys.modules[name]
        sys.modules.update(theirs)


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
                _seen(name)
                with _ourselves():
                    begin(module)
            except Exception as error:
                _seen(f"failed {type(error).__name__}: {error}")

        spec.loader.exec_module = run_and_watch  # type: ignore[method-assign]
        return spec


def _begin_torch(_: ModuleType) -> None:
    from epochzero.run.watch.child.begin import begin

    begin(os.environ[FILE_VARIABLE], os.environ)


def _begin_keras(keras: ModuleType) -> None:
    from epochzero.run.watch.child.begin import begin_keras

    begin_keras(keras, os.environ[FILE_VARIABLE], os.environ)


if os.environ.get(FILE_VARIABLE):
    _seen("python")
    _hide_ourselves()
    sys.meta_path.insert(0, _AfterImport())  # type: ignore[arg-type]
_next_of_the_same_name()
