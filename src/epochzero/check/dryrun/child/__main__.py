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
import pickle
import re
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack, suppress
from importlib import import_module
from subprocess import CalledProcessError
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


# Bytecode of ours, or of a library, would be listed among the files that the job writes.
sys.dont_write_bytecode = True
_find_ourselves()
# What is imported with torch finds it there: the job's Python need not have EpochZero.
import_module("epochzero.injected")

from epochzero.check.dryrun.child import (  # noqa: E402
    frameworks,
    guard,
    traced,
    without_deepspeed,
)
from epochzero.check.dryrun.child.agreement import Agreement  # noqa: E402
from epochzero.check.dryrun.child.deepspeed import StandIn  # noqa: E402
from epochzero.check.dryrun.child.emit import LONGEST_TEXT, RecordPipe  # noqa: E402
from epochzero.check.dryrun.child.frames import Roots, behind, described, text_of, walked  # noqa: E402
from epochzero.check.dryrun.child.imports import Finder, compiled  # noqa: E402
from epochzero.check.dryrun.child.loops import OutOfTime, Runtime, loops_around  # noqa: E402
from epochzero.check.dryrun.child.operands import (  # noqa: E402
    is_bound,
    is_comparable,
    operands,
)
from epochzero.check.dryrun.child.phases import Phases  # noqa: E402
from epochzero.check.dryrun.child.ranks import (  # noqa: E402
    VARIABLES,
    LaunchesRanks,
    run_ranks,
    running,
)
from epochzero.check.dryrun.child.resume import way  # noqa: E402
from epochzero.check.dryrun.child.rewrite import RUNTIME  # noqa: E402
from epochzero.check.dryrun.child.sites import sites  # noqa: E402
from epochzero.check.dryrun.child.synthesized import put  # noqa: E402
from epochzero.check.dryrun.child.waiting import WaitReporter, described_frame  # noqa: E402

MOST_IN_A_PIPE = 1 << 15
FRAMES_OF_A_TRACE = 20


class ChildRun:
    """One run of one job.

    Args:
        spec: what to run: ``script``, ``module`` or ``code`` (its path and text), ``argv``, ``roots``, ``mode``, ``gpus``, ``devices``
            (that JAX sees), ``world``, ``seconds``, ``batch`` (samples of a batch at most, 0 for all), ``whole`` (loops are not
            shortened), ``often`` (how often a loop sees the same before it jumps ahead), ``resume`` (what was saved is given to the script once more), ``made`` (data,
            and where to put them) and ``claims`` (paths and lines that a rule claims to fail).
        records: where to write what happens.

    Attributes:
        launches: number of ranks that the script would have started; 0 if none.
    """

    def __init__(self, spec: dict[str, Any], records: RecordPipe) -> None:
        self._spec = spec
        self._records = records
        self._roots = Roots(spec["roots"])
        self._runtime = Runtime(records, spec["seconds"], whole=spec["whole"], often=spec["often"])
        self._fake = spec["mode"] == "fake"
        self._claims: dict[str, set[int]] = {}
        for path, line in spec["claims"]:
            self._claims.setdefault(os.path.realpath(path), set()).add(line)
        self._phases = Phases(
            records, self._runtime, self._roots, real=not self._fake, batch=spec["batch"]
        )
        self._layers: Any = None
        self._rank: int | None = None
        self.launches = 0
        self._until_the_end = ExitStack()

    def run(self) -> tuple[int, dict[str, Any] | None]:
        """Run the job to its end: its exit status, and how it would resume from its checkpoint."""
        faulthandler.enable()
        self._install()
        put(self._spec["made"], self._records)
        self._records.emit("started", python=sys.version.split()[0], mode=self._spec["mode"])
        try:
            faked = self._pretended() if self._fake else None
        except Exception as unfit:
            self._records.emit("unfit", why=str(unfit))
            return 0, None
        ranks = {value["rank"]: value["environment"] for value in self._spec["ranks"]}
        if len(ranks) > 1:
            return self._all_ranks(ranks)
        status = self._ran()
        if faked is not None:
            self._tell(faked)
        return status, self._onward(status)

    def _all_ranks(self, ranks: dict[int, dict[str, str]]) -> tuple[int, dict[str, Any] | None]:
        """The same script in a process for each rank."""
        self._preload()

        def body(number: int) -> int:
            self._rank = number
            WaitReporter(self._records, self._runtime, self._roots, self._phases.of).start()
            status = self._ran()
            if onward := self._onward(status):
                self._records.emit("onward", **onward)
            return status

        with tempfile.TemporaryFile() as shared:
            self._runtime.agreement = Agreement(shared)
            return run_ranks(list(ranks), ranks, body, self._records)

    def _preload(self) -> None:
        """Import torch once for all ranks, if the job's Python has it."""
        with suppress(ImportError):  # each rank raises it again
            import_module("torch")

    def _onward(self, status: int) -> dict[str, Any] | None:
        """How the job would resume from its own checkpoint; None if it cannot."""
        phases = self._phases
        if status or not self._spec["resume"]:
            return None
        found = way(phases.options, phases.unset, self._spec["argv"], phases.saved)
        return found and {"argv": list(found.argv), "variables": found.variables}

    def _install(self) -> None:
        setattr(builtins, RUNTIME, self._runtime)
        self._phases.arguments()
        self._phases.files()
        own = {
            "numpy": self._phases.numpy,
            "torch": self._torch,
            "click.core": self._phases.click,
            "hydra.core.utils": self._phases.hydra,
            "accelerate.accelerator": self._phases.accelerate,
            "torch.distributed.checkpoint.default_planner": self._planner,
        }
        adjusted = (
            own,
            frameworks.adjusted(self._phases, self._runtime, self._roots),
            without_deepspeed.adjusted(self._phases),
            traced.watched(self._phases, self._runtime, self._spec["devices"]),
        )
        sys.meta_path.insert(0, Finder(self._roots, self._seen, self._claims, *adjusted))
        sys.meta_path.append(StandIn(self._roots, self._phases.assume, self._phases.configured))

    def _torch(self, torch: ModuleType) -> None:
        """Torch is imported: by the job, or to pretend its GPU."""
        self._phases.torch(torch)
        running = [value["rank"] for value in self._spec["ranks"]]
        if len(running) > 1 and torch.distributed.is_available():
            import_module("epochzero.check.dryrun.child.group").install(running)
        self._layers = import_module("epochzero.check.dryrun.child.layers")
        self._until_the_end.enter_context(self._layers.watched())
        if self._spec["gpus"] and not self._fake:
            cpu_execution = import_module("epochzero.injected.gpus.cpu_execution")
            cpu_execution.install(self._spec["gpus"], self._roots.holds, self._phases.assume)

    def _planner(self, module: Any) -> None:
        """A checkpoint lacks the shards of processes that are only imagined: none is missed."""
        if self._fake:
            validate = module._validate_global_plan
            # It answers with what is wrong; before torch 2.13, whether all is right.
            module._validate_global_plan = lambda *given: (
                [] if isinstance(validate(*given), list) else True
            )

    def _pretended(self) -> Any:
        """The platform's GPU, pretended from here on."""
        fake = import_module("epochzero.check.dryrun.child.fake")
        faked = self._until_the_end.enter_context(
            fake.enter(self._spec["gpus"], self._spec["world"])
        )
        self._runtime.trace = faked.trace
        return faked

    def _tell(self, faked: Any) -> None:
        """What was assumed, saved and allocated on the pretended GPU."""
        for (what, path, line), count in faked.assumptions.items():
            self._records.emit("assumed", what=what, path=path, line=line, count=count)
        for path, size in faked.saved.items():
            self._records.emit("saved", path=path, bytes=size)
        lines = list(faked.trace.lines())
        for start in range(0, len(lines), LINES_A_RECORD):
            self._records.emit("allocated", lines=lines[start : start + LINES_A_RECORD])

    def _seen(self, tree: Any, path: str) -> None:
        for site in sites(tree):
            self._records.emit("site", path=path, **site._asdict())

    # -- The script, as Python itself would run it ---------------------------------------------

    def _ran(self) -> int:
        try:
            self._script()
        except LaunchesRanks as launched:
            self.launches = launched.count
            return 0
        except OutOfTime as over:
            path, line = self._users(over)
            self._records.emit("ended", status=0, why="time", path=path, line=line)
            return 0
        except SystemExit as stop:
            if stop.code not in (None, 0):
                return self._stopped(stop)
        except BaseException as error:
            self._raised(error)
            return 1
        self._records.emit("ended", status=0, why="script ended", visited=self._visited())
        return 0

    def _users(self, error: BaseException) -> tuple[str, int]:
        """The innermost line of the user's that an error came through."""
        lines = [(frame.f_code.co_filename, line) for frame, line in walked(error.__traceback__)]
        return next((at for at in reversed(lines) if self._roots.holds(at[0])), ("", 0))

    def _script(self) -> None:
        main = ModuleType("__main__")
        name, given = self._spec.get("module"), self._spec.get("code") or {}
        if name or given:
            sys.path.insert(0, os.getcwd())
            path = self._module(name, main) if name else given["path"]
        else:
            path = self._spec["script"]
            sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        code = compiled(given["text"].encode(), path, self._seen, {}) if given else self._code(path)
        main.__file__ = path  # loops that are watched name it, those of `-c` too
        sys.argv[:] = ["-c" if given else path, *self._spec["argv"]]
        sys.modules["epochzero.check.dryrun.child.__main__"] = sys.modules["__main__"]
        sys.modules["__main__"] = main
        # The job imports the EpochZero of its own Python, if there is one.
        for package in PACKAGES[:-1]:
            sys.modules.pop(package)
        exec(code, main.__dict__)

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
            return compiled(source, path, self._seen, self._claims)
        return compile(source, path, "exec", dont_inherit=True)

    # -- How it ended --------------------------------------------------------------------------

    def _stopped(self, stop: SystemExit) -> int:
        if not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        self._record(self._handled_before(stop) or stop)
        return stop.code if isinstance(stop.code, int) else 1

    def _handled_before(self, stop: SystemExit) -> BaseException | None:
        """The error of the user's code that was caught and ended the script with a status and no text of its own.

        Libraries do so, as Hydra's decorator does, and scripts that log what ends them. Code that is called while an
        error is handled may exit for another reason.
        """
        error, frames = stop.__context__, [frame for frame, _ in walked(stop.__traceback__)]
        if error is None or stop.__suppress_context__ or not self._users(error)[0]:
            return None
        caught_there = next((frame for frame, _ in walked(error.__traceback__)), None)
        in_library = not self._roots.holds(frames[-1].f_code.co_filename)
        exits_there = frames[-1] is caught_there and isinstance(stop.code, int)
        return error if in_library or exits_there else None

    def _raised(self, error: BaseException) -> None:
        # What came before must stand before it: what comes after an error says that it was handled.
        sys.stdout.flush()
        print(_printed(error), file=sys.stderr, end="")
        self._record(error)

    def _record(self, error: BaseException) -> None:
        trace = error.__traceback__
        kind, message = text_of(error)
        self._records.emit(
            "raised",
            type=kind,
            message=message,
            frames=described(trace) + behind(error) + _of_syntax(error),
            phase=self._phases.of(walked(trace)),
            trace=_explained(error),
            **self._of_rank(error),
            layer=self._layers.explain(error) if self._layers else None,
            certain=not self._runtime.skipped
            or (
                _of_code(error)
                and not (isinstance(error, NameError) and is_bound(error, self._roots))
            )
            or (_of_types(error) and is_comparable(error, self._roots))
            or _in_model(trace)
            or _of_whole_data(error),
            taken=self._runtime.taken,
            comparable=is_comparable(error, self._roots),
            operands=operands(error, self._roots),
        )

    def _visited(self) -> list[tuple[str, int]]:
        """Lines that exchanged data with other ranks."""
        return sorted(self._runtime.visited) if self._rank is not None else []

    def _of_rank(self, error: BaseException) -> dict[str, Any]:
        """What the supervisor of the ranks needs in addition, to compare it with other ranks."""
        if self._rank is None:
            return {}
        frames = [
            {**described_frame(frame, line), "own": self._roots.holds(frame.f_code.co_filename)}
            for frame, line in walked(error.__traceback__)
        ]
        stack = list(walked(error.__traceback__))[::-1]
        return {
            "at": time.monotonic(),
            "own": [frame for frame in frames if frame["own"]],
            "loops": list(loops_around(stack)),
            "visited": self._visited(),
        }


def _of_syntax(error: BaseException) -> list[dict[str, Any]]:
    """Where the text of a module is no Python; no code of it has a frame."""
    if not isinstance(error, SyntaxError) or not error.filename:
        return []
    text = (error.text or "").strip()
    return [{"path": error.filename, "line": error.lineno or 0, "function": "", "code": text}]


def _of_code(error: BaseException) -> bool:
    """Whether the code itself is wrong, however often it runs."""
    if isinstance(error, UnboundLocalError) or _NOT_YET.search(str(error)):
        return False
    return isinstance(error, (ImportError, NameError, SyntaxError)) or bool(
        _OF_CODE.search(str(error))
    )


def _of_types(error: BaseException) -> bool:
    """Whether types are wrong, which are the same in each iteration, and not those before the first."""
    message = str(error)
    if _NOT_YET.search(message) or "NoneType" in message:
        return False
    return isinstance(error, (TypeError, pickle.PicklingError)) or "cannot pickle" in message


_OF_CODE = re.compile(
    r"^module '.*' has no attribute|unexpected keyword argument|required positional argument|positional arguments? but"
    r"|object has no attribute|^This '\w+' has no attribute|loading state_dict for|objects could not be loaded"
    r"|could not find the monitored key|is not found in the evaluation metrics|is not in struct"
    r"|at least two devices|scalar type|same dtype|desired output type|can't convert cuda|not implemented for '"
)
_NOT_YET = re.compile(r"'(NoneType|int|float)' object")
"""What a variable is before the iteration that gives it its value."""


def _in_model(trace: TracebackType | None) -> bool:
    """Whether an error comes out of a model's ``forward``, which no loop's shortening reaches."""
    return any(frame.f_code.co_name == "_call_impl" for frame, _ in walked(trace))


def _of_whole_data(error: BaseException) -> bool:
    """Whether shapes differ in a batch of numbered samples, or in an evaluation of Transformers, which is whole."""
    is_whole = any(
        frame.f_code.co_name == "evaluation_loop"
        or type(frame.f_locals.get("self")).__name__ == "_MapDatasetFetcher"
        for frame, _ in walked(error.__traceback__)
    )
    return is_whole and bool(_OF_SHAPES.search(str(error)))


_OF_SHAPES = re.compile(r"\bshapes? |equal size|numbers of samples|sizes? of (array|input|tensor)")


def _printed(error: BaseException, frames: int | None = None) -> str:
    """The traceback of an error as Python prints it, without the frames of the dry run."""
    shown: traceback.TracebackException | None
    whole = shown = traceback.TracebackException.from_exception(error, limit=frames)
    while shown is not None:
        kept = [f for f in shown.stack if not f.filename.startswith(os.path.dirname(__file__))]
        shown.stack[:] = kept
        shown = shown.__cause__ or shown.__context__
    return "".join(whole.format())


def _explained(error: BaseException) -> str:
    """The innermost frames of a traceback, after what a failed program wrote; empty where only the output explains the end."""
    written = getattr(error, "stderr", None) if isinstance(error, CalledProcessError) else None
    if isinstance(error, SystemExit) or (isinstance(error, CalledProcessError) and not written):
        return ""
    text = written.decode(errors="replace") if isinstance(written, bytes) else written or ""
    text += _printed(error, -FRAMES_OF_A_TRACE)
    half = LONGEST_TEXT // 2
    return text if len(text) < LONGEST_TEXT else f"{text[: half - 10]}\n...\n{text[10 - half :]}"


def main() -> None:
    """Reads the spec, runs the job and leaves as it did."""
    descriptor, records_out = int(sys.argv[1]), int(sys.argv[2])
    records = RecordPipe(records_out)
    with os.fdopen(descriptor, "rb") as file:
        spec = json.load(file)
    environment, folder = dict(os.environ), os.getcwd()
    _contain(records, Roots(spec["roots"]))
    began = time.monotonic()
    dry = ChildRun(spec, records)
    status, onward = dry.run()
    sys.stdout.flush()
    sys.stderr.flush()
    seconds = spec["seconds"] - (time.monotonic() - began)
    if dry.launches:
        records.end()
        again = {**spec, **_launched(dry.launches), "seconds": max(seconds, 1.0)}
        _begin_anew(again, records_out, VARIABLES | environment, folder)
    if onward:
        variables = [f"{name}={value}" for name, value in onward["variables"].items()]
        records.emit("resumed", argv=[*variables, *onward["argv"]])
        records.end()
        again = {**spec, "argv": onward["argv"], "seconds": max(seconds, 1.0), "resume": False}
        _begin_anew(again, records_out, environment | onward["variables"], folder)
    os._exit(status & 0xFF)


def _contain(records: RecordPipe, roots: Roots) -> None:
    """Report what leaves the process, and hold it back where nothing else does."""

    def emit(record: dict[str, Any]) -> None:
        records.emit(**record)

    scratch = os.environ.pop(guard.SCRATCH_VARIABLE, "")
    if scratch:
        guard.install(scratch, emit, roots.holds)
    else:
        guard.listen(emit, roots.holds)


def _launched(count: int) -> dict[str, Any]:
    """The part of the spec that describes ranks of one machine, with the variables that Lightning gives them."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "NODE_RANK": "0"}
    own = shared | {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    ranks = [{"rank": n, "environment": own | {"LOCAL_RANK": str(n)}} for n in running(count)]
    return {"ranks": ranks, "world": {"size": count, "rank": 0, "local_size": count}}


def _begin_anew(
    spec: dict[str, Any], records: int, environment: dict[str, str], folder: str
) -> None:
    """The same process with the same files, and nothing else of what the script did to it."""
    reading, writing = os.pipe()
    text = json.dumps(spec).encode()
    if len(text) > MOST_IN_A_PIPE:
        return
    os.write(writing, text)
    os.close(writing)
    os.chdir(folder)
    for number in (reading, records):
        os.set_inheritable(number, True)
    command = [sys.executable, os.path.abspath(__file__), str(reading), str(records)]
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
