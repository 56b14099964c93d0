"""Python imports this before the first line of a job, and it begins what is to run in the job's process.

Its folder is the first of PYTHONPATH when `epochzero.injected.companions` has set up the job's environment.
It needs nothing but the standard library until a module that a companion waits for is imported, and it
never keeps a job from running. How far it came is noted in a file: ``python``, the modules that were waited
for, and what failed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

COMPANIONS_VARIABLE = "EPOCHZERO_COMPANIONS"
NOTES_VARIABLE = "EPOCHZERO_COMPANIONS_NOTES"
LAUNCHERS_VARIABLE = "EPOCHZERO_LAUNCHERS"
"""Lists programs that start a training's ranks with a copy of their own variables."""
AT_START = "python"
_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))


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
    launchers = os.environ.get(LAUNCHERS_VARIABLE, "").split(",")
    if any(os.path.basename(word) in launchers for word in started):
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


def _note(what: str) -> None:
    try:
        with open(os.environ[NOTES_VARIABLE], "a", encoding="utf-8") as file:
            file.write(what + "\n")
    except (KeyError, OSError):
        pass


def _packages(modules: list[str]) -> dict[str, str]:
    """The packages that modules of ours lie in, each with its folder; what is above comes first."""
    found = {}
    for module in modules:
        words = module.split(".")[:-1]
        for count in range(1, len(words) + 1):
            found[".".join(words[:count])] = os.path.join(_ROOT, *words[1:count])
    return found


@contextmanager
def _ourselves(packages: dict[str, str]) -> Iterator[None]:
    """Within it our package is what is imported; the job's Python may have none, or another version."""
    theirs = {name: sys.modules.pop(name) for name in packages if name in sys.modules}
    for name, folder in packages.items():
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    try:
        yield
    finally:
        for name in packages:
            del sys.modules[name]
        sys.modules.update(theirs)


class _Companions:
    """What begins, and when; a finder of modules that tells when one has been imported."""

    def __init__(self, text: str) -> None:
        self._waiting: dict[str, list[str]] = {}
        self._looking: set[str] = set()
        for word in text.split(","):
            when, _, call = word.partition("=")
            self._waiting.setdefault(when, []).append(call)
        calls = [call for waiting in self._waiting.values() for call in waiting]
        self._packages = _packages([call.partition(":")[0] for call in calls])

    def begin(self, when: str, imported: ModuleType) -> None:
        """Begins those that wait for this."""
        _note(when)
        for call in self._waiting.pop(when, ()):
            try:
                with _ourselves(self._packages):
                    module, _, function = call.partition(":")
                    getattr(importlib.import_module(module), function)(imported, os.environ)
            except Exception as error:
                _note(f"failed {call} {type(error).__name__}: {error}")

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self._waiting or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.discard(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_begin(module: ModuleType) -> None:
            run(module)
            self.begin(name, module)

        spec.loader.exec_module = run_and_begin  # type: ignore[method-assign]
        return spec


if os.environ.get(COMPANIONS_VARIABLE):
    _hide_ourselves()
    _companions = _Companions(os.environ[COMPANIONS_VARIABLE])
    _companions.begin(AT_START, sys.modules["sys"])
    sys.meta_path.insert(0, _companions)  # type: ignore[arg-type]
_next_of_the_same_name()
