"""Runs a job's script dry, in the job's own Python: ``python __main__.py SPEC RECORDS``.

Both are file descriptors: what to run is read from the first as JSON, what happened is written to
the second as JSON lines. The file is run by its path, and nothing of EpochZero but this folder is
imported: the job's Python need not have what EpochZero needs.
"""

from __future__ import annotations

import builtins
import faulthandler
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, ModuleType, TracebackType
from typing import Any

LINES_A_RECORD = 1000
"""Of a trace: what the parent takes of one record is bounded."""
PACKAGES = (
    "epochzero",
    "epochzero.check",
    "epochzero.check.dryrun",
    "epochzero.check.dryrun.child",
)


def _find_ourselves() -> None:
    """Makes ``epochzero.check.dryrun.child`` importable without the packages that it lies in."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]
    for name in reversed(PACKAGES):
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = os.path.dirname(folder)


_find_ourselves()

from epochzero.check.dryrun.child import frameworks  # noqa: E402
from epochzero.check.dryrun.child.emit import Records  # noqa: E402
from epochzero.check.dryrun.child.frames import Roots, described, walked  # noqa: E402
from epochzero.check.dryrun.child.imports import Finder, compiled  # noqa: E402
from epochzero.check.dryrun.child.loops import OutOfTime, Runtime  # noqa: E402
from epochzero.check.dryrun.child.phases import Phases  # noqa: E402
from epochzero.check.dryrun.child.rewrite import RUNTIME  # noqa: E402
from epochzero.check.dryrun.child.sites import sites  # noqa: E402


class DryRun:
    """One run of one job.

    Args:
        spec: what to run: ``script`` or ``module``, ``argv``, ``roots``, ``mode``, ``seconds`` and
            ``whole`` (loops are not shortened).
        records: where to write what happens.
    """

    def __init__(self, spec: dict[str, Any], records: Records) -> None:
        self._spec = spec
        self._records = records
        self._roots = Roots(spec["roots"])
        self._runtime = Runtime(records, spec["seconds"], whole=spec["whole"])
        real = spec["mode"] == "real"
        self._phases = Phases(records, self._runtime, self._roots, real=real)

    def run(self) -> int:
        """Run the job to its end; its exit status."""
        faulthandler.enable()
        self._install()
        self._records.emit("started", python=sys.version.split()[0], mode=self._spec["mode"])
        try:
            with self._device():
                self._script()
        except OutOfTime:
            self._records.emit("ended", status=0, why="time")
            return 0
        except SystemExit as stop:
            return self._stopped(stop)
        except BaseException as error:
            self._raised(error)
            return 1
        self._records.emit("ended", status=0, why="script ended")
        return 0

    def _install(self) -> None:
        setattr(builtins, RUNTIME, self._runtime)
        self._phases.arguments()
        adjusted = {"torch": self._phases.torch, **frameworks.adjusted(self._phases)}
        sys.meta_path.insert(0, Finder(self._roots, self._seen, adjusted))

    @contextmanager
    def _device(self) -> Iterator[None]:
        """The platform's GPU, pretended where it is asked for; what pretends it imports torch."""
        if self._spec["mode"] == "real":
            yield
            return
        fake = import_module("epochzero.check.dryrun.child.fake")
        layers = import_module("epochzero.check.dryrun.child.layers")
        with fake.enter(self._spec["gpus"], self._spec["world"]) as faked, layers.watched():
            try:
                yield
            finally:
                self._told(faked)

    def _told(self, faked: Any) -> None:
        """What was assumed of the GPU, and what was allocated on it."""
        for (what, path, line), count in faked.assumptions.items():
            self._records.emit("assumed", what=what, path=path, line=line, count=count)
        lines = list(faked.trace.lines())
        for start in range(0, len(lines), LINES_A_RECORD):
            self._records.emit("allocated", lines=lines[start : start + LINES_A_RECORD])

    def _seen(self, tree: Any, path: str) -> None:
        for site in sites(tree):
            self._records.emit("site", path=path, **site._asdict())

    # -- The script, as Python itself would run it ---------------------------------------------

    def _script(self) -> None:
        main = ModuleType("__main__")
        name = self._spec.get("module")
        if name:
            sys.path.insert(0, os.getcwd())
            path = self._module(name, main)
        else:
            path = self._spec["script"]
            sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        main.__file__ = path
        sys.argv[:] = [path, *self._spec["argv"]]
        sys.modules["epochzero.check.dryrun.child.__main__"] = sys.modules["__main__"]
        sys.modules["__main__"] = main
        exec(self._code(path), main.__dict__)

    def _module(self, name: str, main: ModuleType) -> str:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        main.__spec__, main.__package__ = spec, spec.parent
        return spec.origin

    def _code(self, path: str) -> CodeType:
        with open(path, "rb") as file:
            source = file.read()
        if self._roots.holds(path):
            return compiled(source, path, self._seen)
        return compile(source, path, "exec", dont_inherit=True)

    # -- How it ended --------------------------------------------------------------------------

    def _stopped(self, stop: SystemExit) -> int:
        if stop.code is None or stop.code == 0:
            self._records.emit("ended", status=0, why="script ended")
            return 0
        if not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        self._record(stop)
        return stop.code if isinstance(stop.code, int) else 1

    def _raised(self, error: BaseException) -> None:
        shown = traceback.TracebackException.from_exception(error)
        _without_ours(shown)
        # What came before must stand before it: what comes after an error says that it was handled.
        sys.stdout.flush()
        print("".join(shown.format()), file=sys.stderr, end="")
        self._record(error)

    def _record(self, error: BaseException) -> None:
        trace = error.__traceback__
        self._records.emit(
            "raised",
            type=_name(error),
            message=str(error),
            frames=described(trace) + _of_syntax(error),
            phase=self._phases.of(walked(trace)),
            layer=None,
            certain=not self._runtime.skipped or _of_code(error) or _in_model(trace),
            fatal=True,
        )


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _of_syntax(error: BaseException) -> list[dict[str, Any]]:
    """Where the text of a module is no Python; no code of it has a frame."""
    if not isinstance(error, SyntaxError) or not error.filename:
        return []
    text = (error.text or "").strip()
    return [{"path": error.filename, "line": error.lineno or 0, "function": "", "code": text}]


def _of_code(error: BaseException) -> bool:
    """Whether the code itself is wrong, however often it runs."""
    if isinstance(error, UnboundLocalError):
        return False
    return isinstance(error, (ImportError, NameError, SyntaxError)) or bool(
        _OF_CODE.search(str(error))
    )


_OF_CODE = re.compile(
    r"unexpected keyword argument|required positional argument|positional arguments? but"
    r"|^module '.*' has no attribute"
)


def _in_model(trace: TracebackType | None) -> bool:
    """Whether an error comes out of a model's ``forward``, which no loop's shortening reaches."""
    return any(frame.f_code.co_name == "_call_impl" for frame, _ in walked(trace))


def _without_ours(shown: traceback.TracebackException | None) -> None:
    """Leaves the frames of the dry run out, of the errors behind the error too."""
    while shown is not None:
        kept = [f for f in shown.stack if not f.filename.startswith(os.path.dirname(__file__))]
        shown.stack[:] = kept
        shown = shown.__cause__ or shown.__context__


def main() -> None:
    """Reads the spec, runs the job and leaves as it did."""
    descriptor, records = int(sys.argv[1]), Records(int(sys.argv[2]))
    with os.fdopen(descriptor, "rb") as file:
        spec = json.load(file)
    status = DryRun(spec, records).run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
