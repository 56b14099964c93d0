"""Captures this process: stores what a replay needs, and writes it when the job fails.

A capture is a directory with ``manifest.json.gz`` (fields: docs/replay.md) and ``tensors.safetensors``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.injected.ranks import own_rank
from epochzero.redact import redact_command
from epochzero.run.replay.child import failure as failures
from epochzero.run.replay.child.files import (
    MANIFEST,
    SCHEMA,
    TENSORS,
    failed_of,
    parts_of_workers,
    write_json,
)
from epochzero.run.replay.child.inputs import Inputs, standard_input
from epochzero.run.replay.child.loaded import packages, sources
from epochzero.run.replay.child.sources import Sources, states_as_json
from epochzero.run.watch.child.places import user_frame


class ExitObserver:
    """Observes how this process ends.

    `sys.excepthook` is not replaced: Python leaves the exception that ended the process for its exit functions.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._exit: dict[str, Any] | None = None

    def listen(self) -> None:
        """Start observing."""
        atexit.register(self._ended)
        leave = sys.exit

        def exit_(status: Any = None, /) -> None:
            if status not in (None, 0, False) and self._pid == os.getpid():
                raised = sys.exc_info()[1]
                self._exit = (
                    failures.of_exception(raised, self.encode)
                    if raised is not None
                    else failures.of_exit(status, user_frame(), self.encode)
                )
                if _is_child():
                    # multiprocessing terminates its processes without exit functions.
                    self.failed(self._exit)
            leave(status)

        exit_.__doc__, exit_.__name__ = leave.__doc__, leave.__name__
        sys.exit = exit_  # type: ignore[assignment]

    def _ended(self) -> None:
        if self._pid != os.getpid():
            return
        error = getattr(sys, "last_value", None)
        try:
            if isinstance(error, Exception):
                self.failed(failures.of_exception(error, self.encode))
            elif self._exit is not None:
                self.failed(self._exit)
            else:
                self.ended_well()
        except Exception as trouble:
            self.trouble(trouble)

    def listen_for_signals(self) -> None:
        """SIGTERM still terminates the job, after the capture is written."""
        try:
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminated)
        except ValueError:
            pass  # not the main thread

    def _terminated(self, number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        if self._pid == os.getpid():
            try:
                self.failed(failures.of_signal(number))
            except Exception as trouble:
                self.trouble(trouble)
        os.kill(os.getpid(), number)

    def encode(self, value: Any) -> Any:
        """Encode an argument as JSON."""
        raise NotImplementedError

    def failed(self, failure: dict[str, Any]) -> None:
        """Called when the process has failed."""
        raise NotImplementedError

    def ended_well(self) -> None:
        """Called when the process ends without failure."""
        raise NotImplementedError

    def trouble(self, error: Exception) -> None:
        """Called when the capture itself raised an error."""


def _is_child() -> bool:
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


class ProcessCapture(ExitObserver):
    """Captures this process into the directory of its rank."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        """Prepare the capture.

        Args:
            root: directory of the captures of all processes of the job.
            environment: of this process.
        """
        super().__init__()
        self._root = root
        self.rank = own_rank(environment)
        self._folder = root / f"rank-{self.rank}"
        self._began = time.time()
        self._script = os.path.abspath(sys.argv[0])
        self._inputs = Inputs(str(root.parent))
        self._input = standard_input()
        self._arguments: dict[str, Any] = {}
        self._course: Any = None
        self._keeper: Any = None
        self._owns = False
        self.sources = Sources(self._folder)

    def begin(self) -> None:
        """Start before the first line of the job."""
        self.sources.watch_python()
        self._inputs.listen()
        if self._input.startswith("/"):
            self._inputs.note(self._input)
        self.listen()

    def follow(self, _: ModuleType) -> None:
        """Follow the training, once torch is imported."""
        from epochzero.run.replay.child.course import Course
        from epochzero.run.replay.child.hooks import install
        from epochzero.run.replay.child.keeper import Keeper

        self._course = Course()
        self._keeper = self._course.follower = Keeper(self._course, self._write)
        self._course.on_fork.append(self.sources.forked)
        self._course.on_worker_failure = self._worker_failed
        install(self._course)
        self.listen_for_signals()

    def encode(self, value: Any) -> Any:
        """See `ExitObserver`. Small tensors in arguments are stored."""
        if self._course is None:
            return _plain(value)
        from epochzero.run.replay.child.structure import encode
        from epochzero.run.replay.child.tensors import is_kept

        def put(tensor: Any) -> str | None:
            if not is_kept(tensor) or tensor.numel() * tensor.element_size() > 1 << 20:
                return None
            name = f"argument.{len(self._arguments)}"
            self._arguments[name] = tensor.detach().cpu().clone()
            return name

        return encode(value, put)

    def failed(self, failure: dict[str, Any]) -> None:
        """See `ExitObserver`."""
        trains = self._course is not None and self._course.trains
        if (failure["kind"] != "signal" or trains) and not _is_worker():
            self._write(failure)

    def ended_well(self) -> None:
        """See `ExitObserver`. Nothing is written unless a loss was not finite."""
        others = not self._owns and (self._folder / MANIFEST).exists()
        if not others and (self._course is None or self._course.nonfinite is None):
            shutil.rmtree(self._folder, ignore_errors=True)
            with suppress(OSError):
                self._root.rmdir()

    def trouble(self, error: Exception) -> None:
        """See `ExitObserver`."""
        if self._course is not None:
            self._course.troubles.append(f"{type(error).__name__}: {error}"[:500])

    def _worker_failed(self, name: str, indices: Any, states: dict[str, Any]) -> None:
        """In a data-loader worker: write the indices and random states of the batch that failed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seed = sys.modules["torch"].initial_seed()
        # The loader derives both seeds from it, and many samples draw nothing.
        random = states_as_json(states, {"random": seed, "torch": seed})
        record = {"indices": self.encode(indices), "random": random}
        write_json(self._folder / failed_of(name), record)

    def _write(self, failure: dict[str, Any] | None = None) -> None:
        """Write the capture; on a full disk, write nothing and let the job continue."""
        began = time.monotonic()
        self._own()
        partial = self._folder / "partial"
        try:
            partial.mkdir(mode=0o700, parents=True, exist_ok=True)
            parts = self._write_tensors(partial / TENSORS) if self._keeper is not None else {}
            parts |= parts_of_workers(self._folder)
            write_json(partial / MANIFEST, self._manifest(failure, parts))
            for name in (TENSORS, MANIFEST):
                if (partial / name).exists():
                    os.replace(partial / name, self._folder / name)
        except OSError as error:
            self.trouble(error)
            with suppress(OSError):
                (self._folder / MANIFEST).unlink(missing_ok=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            if self._course is not None and failure is None:
                self._course.spent_s += time.monotonic() - began

    def _own(self) -> None:
        """Take the directory of the rank; the directory of another process stays."""
        if not self._owns and (self._folder / MANIFEST).exists():
            self._folder = self._root / f"rank-{self.rank}-{os.getpid()}"
        self._owns = True

    def _write_tensors(self, path: Path) -> dict[str, Any]:
        from epochzero.run.replay.child.tensors import write_tensors

        path.unlink(missing_ok=True)
        return {TENSORS: write_tensors(path, {**self._keeper.tensors(), **self._arguments})}

    def _manifest(self, failure: dict[str, Any] | None, parts: dict[str, Any]) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "rank": self.rank,
            "argv": redact_command(sys.orig_argv),
            "folder": os.getcwd(),
            "pid": os.getpid(),
            "time": time.time(),
            "elapsed_s": time.time() - self._began,
            "versions": versions(),
            "start": self.sources.start,
            "drawn": self.sources.drawn,
            "input": self._input,
            "files": self._inputs.described() if failure is not None else [],
            "packages": packages() if failure is not None else {},
            "code": sources(self._script),
            **self._training(),
            "failure": failure,
            "parts": parts,
        }

    def _snapshot(self) -> dict[str, Any] | None:
        snapshot: dict[str, Any] | None = self._keeper.snapshot
        if snapshot is None:
            return None
        return {**snapshot, "random": states_as_json(snapshot["random"], self.sources.start)}

    def _training(self) -> dict[str, Any]:
        course, keeper = self._course, self._keeper
        if course is None:
            return {
                "position": {"steps": 0, "backwards": 0, "batches": 0}, "losses": [], "nonfinite": None,
                "snapshot": None, "events": [], "complete": False, "checkpoint_bytes": 0,
                "devices": [], "threads": 0, "spent_s": 0.0, "troubles": [],
            }  # fmt: skip
        import torch

        devices = {str(p.device) for model in course.models for p in model.parameters()}
        return {
            "losses": [loss if loss - loss == 0 else str(loss) for loss in course.losses()],
            "position": course.position(),
            "nonfinite": course.nonfinite,
            "snapshot": self._snapshot(),
            "events": keeper.events(),
            "complete": keeper.complete,
            "checkpoint_bytes": keeper.size(),
            "devices": sorted(devices),
            "threads": torch.get_num_threads(),
            "spent_s": course.spent_s,
            "troubles": course.troubles,
        }


def versions() -> dict[str, str]:
    """Versions of Python and of imported computing packages."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "numpy"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", ""))
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.version.cuda and torch.cuda.is_initialized():
        found |= {"cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}
    return found


def _is_worker() -> bool:
    torch_data: Any = sys.modules.get("torch.utils.data")
    return torch_data is not None and torch_data.get_worker_info() is not None


def _plain(value: Any) -> Any:
    """Encode an argument in a process that never imported torch."""
    if value is None or isinstance(value, (bool, int, str)):
        return value[:10_000] if isinstance(value, str) else value
    if isinstance(value, (list, tuple)) and len(value) <= 1000:
        return {"kind": type(value).__name__, "items": [_plain(item) for item in value]}
    if isinstance(value, float) and value - value == 0:
        return value
    return {"kind": "left_out", "type": f"{type(value).__module__}:{type(value).__qualname__}"}
