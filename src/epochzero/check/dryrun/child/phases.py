"""Which parts of a job were run, recognized by what of torch, numpy and the standard library it calls.

The phase of the taxonomy that a part belongs to depends on where it runs: in a loop that trains,
before it or after it.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import math
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from epochzero.check.dryrun.child.emit import RecordPipe
from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.largest import largest_second, last_second
from epochzero.check.dryrun.child.loops import Runtime, limiters
from epochzero.check.dryrun.child.resume import (
    ResumeOption,
    noting_what_is_not_set,
    options_of_argparse,
    options_of_click,
    options_of_hydra,
    path_of,
)
from epochzero.injected.compilation import leave_uncompiled

_TRAINERS = ("trainer.py", "xgboost/training.py", "lightgbm/engine.py")
"""Of Lightning, Transformers and Keras, and what boosts; scikit-learn has many."""
COLLECTIVES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object",
    "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "scatter_object_list", "send",
)  # fmt: skip
_CONSTRUCTING = frozenset({"__init__", "_initial_step"})


class Phases:
    """Watches the job and records each part when it is first run.

    Args:
        records: where to write.
        runtime: of the loops; receives what counts as work.
        roots: of the user's code.
        real: whether values of tensors mean something.
        batch: how many samples a batch has at most; 0 for as many as the job asks for.

    Attributes:
        real: as given.
        options: of the parsers that read the command line, those of the last one first.
        unset: environment variables that were asked for and are not set.
        saved: the files and folders that were saved, in order.
    """

    def __init__(
        self, records: RecordPipe, runtime: Runtime, roots: Roots, *, real: bool, batch: int = 0
    ) -> None:
        self._records = records
        self._runtime = runtime
        self._roots = roots
        self.real = real
        self._batch = batch
        self.options: list[ResumeOption] = []
        self.unset: list[str] = []
        self.saved: list[str] = []
        self._reached: set[tuple[str, str, int]] = set()
        self._measured: weakref.WeakSet[Any] = weakref.WeakSet()
        self._opened = self._called = self._few = False

    def reach(self, part: str) -> None:
        """A part of the job is run; recorded once for each line of the user's."""
        path, line = self._roots.place()
        if (part, path, line) not in self._reached:
            self._reached.add((part, path, line))
            phase = self.of(_stack(sys._getframe(1)))
            self._records.emit("reached", how=part, phase=phase, path=path, line=line)

    def of(self, frames: Iterable[tuple[FrameType, int]]) -> str:
        """The phase of the taxonomy in which code with these frames runs."""
        if any(
            _is_trainer(frame) or any(loop.trains for loop in limiters(frame, line))
            for frame, line in frames
        ):
            return "training"
        if self._runtime.steps:
            return "evaluation"
        if self._called:
            return "training"
        return "preprocessing" if self._opened else "initialization"

    # -- What is watched -----------------------------------------------------------------------

    def arguments(self) -> None:
        """The command line is read, by `argparse`; variables of the environment are asked for."""
        kind: Any = argparse.ArgumentParser
        kind.parse_known_args = self._parsing(kind.parse_known_args, options_of_argparse)
        noting_what_is_not_set(self.unset.append)

    def click(self, module: Any) -> None:
        """The command line is read by click."""
        kind = module.Command
        kind.parse_args = self._parsing(kind.parse_args, options_of_click)

    def hydra(self, module: Any) -> None:
        """Hydra has composed a configuration, with which the job is about to run."""
        run = module.run_job

        @functools.wraps(run)
        def ran(*arguments: Any, **options: Any) -> Any:
            config = inspect.signature(run).bind(*arguments, **options).arguments["config"]
            container = import_module("omegaconf").OmegaConf.to_container(config)
            container.pop("hydra", None)
            self.options[:0] = options_of_hydra(container)
            return run(*arguments, **options)

        module.run_job = ran

    def _parsing(
        self, parse: Callable[..., Any], options_of: Callable[[Any], Iterable[ResumeOption]]
    ) -> Callable[..., Any]:
        @functools.wraps(parse)
        def parsed(parser: Any, *arguments: Any, **options: Any) -> Any:
            self.options[:0] = options_of(parser)
            self.reach("arguments")
            return parse(parser, *arguments, **options)

        return parsed

    def accelerate(self, module: Any) -> None:
        """Accelerate saves all of a job's state in a folder."""
        kind = module.Accelerator
        save = kind.save_state

        @functools.wraps(save)
        def saving(accelerator: Any, *arguments: Any, **options: Any) -> Any:
            self.reach("save")
            folder = save(accelerator, *arguments, **options)
            self.saved.append(os.path.abspath(os.fspath(folder)))
            return folder

        kind.save_state = saving

    def files(self) -> None:
        """``pickle.dump``, which saves checkpoints where no library does."""
        library: Any = pickle
        dump = library.dump

        @functools.wraps(dump)
        def dumped(content: Any, file: Any, *arguments: Any, **options: Any) -> None:
            dump(content, file, *arguments, **options)
            self._written(getattr(file, "name", None), sys._getframe(1))

        library.dump = dumped

    def numpy(self, numpy: Any) -> None:
        """``numpy.savez``, the same with arrays."""
        savez = numpy.savez

        @functools.wraps(savez)
        def saved(file: Any, *arguments: Any, **options: Any) -> None:
            savez(file, *arguments, **options)
            self._written(file, sys._getframe(1))

        numpy.savez = saved

    def _written(self, file: Any, caller: FrameType) -> None:
        """A file of anything is a checkpoint where the user's own training writes it."""
        own = self._roots.holds(caller.f_code.co_filename)
        if own and isinstance(file, (str, os.PathLike)) and self.of(_stack(caller)) == "training":
            self.reach("save")
            self.saved.append(os.path.abspath(os.fspath(file)))

    def torch(self, torch: Any) -> None:
        """Everything of torch that a training job calls."""
        modules = torch.nn.modules.module
        modules.register_module_forward_pre_hook(self._enter)
        modules.register_module_forward_hook(self._leave, always_call=True)
        import_module("torch.optim.optimizer").register_optimizer_step_post_hook(self._stepped)
        torch.autograd.backward = self._checking(torch.autograd.backward)
        for owner, name, part in (
            (torch, "load", "load"),
            (torch.nn.Module, "load_state_dict", "load"),
            (torch.jit, "save", "export"),
            (torch.jit, "trace", "export"),
            (torch.jit, "script", "export"),
        ):
            setattr(owner, name, self.telling(getattr(owner, name), part))
        torch.save = self.saving(torch.save)
        self._collectives(torch.distributed)
        for scheduler in vars(torch.optim.lr_scheduler).values():
            self._schedulers(scheduler)
        self._loaders(torch.utils.data)
        leave_uncompiled(torch, self.assume)

    def _collectives(self, distributed: Any) -> None:
        """Functions that return only after other ranks have called them too."""
        for owner in (distributed, getattr(distributed, "distributed_c10d", distributed)):
            for name in COLLECTIVES:
                if hasattr(owner, name):
                    setattr(owner, name, self._exchanging(getattr(owner, name)))

    def _exchanging(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def exchanging(*arguments: Any, **options: Any) -> Any:
            self._runtime.exchange(self._roots.place())
            return function(*arguments, **options)

        return exchanging

    def _schedulers(self, kind: Any) -> None:
        if isinstance(kind, type) and "step" in vars(kind):
            stepping: Any = kind
            stepping.step = self._scheduled(stepping.step)

    def _loaders(self, data: Any) -> None:
        loader, iterator = data.DataLoader, data.dataloader._BaseDataLoaderIter
        begin, draw = loader.__iter__, iterator.__next__

        @functools.wraps(begin)
        def in_this_process(loader: Any) -> Any:
            if loader.num_workers:
                self.assume(f"num_workers={loader.num_workers} replaced by 0")
                loader.num_workers, loader.timeout = 0, 0
            batches: Any = getattr(loader, "batch_sampler", None)
            if self._batch and getattr(batches, "batch_size", 0) > self._batch:
                self.assume(f"batches of {batches.batch_size} examples reduced to {self._batch}")
                batches.batch_size = self._batch
            iterator = begin(loader)
            numbered = batches is not None and hasattr(loader.dataset, "__getitem__")
            if numbered and loader not in self._measured:
                self._measured.add(loader)
                self._worst(iterator, loader)
            if (
                self.real
                and self._few
                and numbered
                and self._is_library(sys._getframe(1).f_code.co_filename)
            ):
                last_second(iterator)
            return iterator

        @functools.wraps(draw)
        def drawn(batches: Any) -> Any:
            self.draws()
            return draw(batches)

        loader.__iter__, iterator.__next__ = in_this_process, drawn

    def _is_library(self, path: str) -> bool:
        """Whether a trainer draws the batches, and not a loop of the user's, which draws its last one."""
        return os.path.dirname(path) != os.path.dirname(__file__) and not self._roots.holds(path)

    def _worst(self, iterator: Any, loader: Any) -> None:
        """Draw early what needs the most memory, and with real values what fails or is longest."""
        if (found := largest_second(iterator, loader.dataset)) is not None:
            number, measured = found
            self.assume(
                f"batch {number + 1:,} is the largest of {measured:,} and moved to second place"
            )

    def assume(self, what: str) -> None:
        """Something is otherwise than on the platform."""
        path, line = self._roots.place()
        self._records.emit("assumed", what=what, path=path, line=line, count=1)

    def shortened(self, what: str, taken: int) -> None:
        """A library is about to leave iterations or rows out, which may be the cause of what comes."""
        self._runtime.skipped = self._few = True
        self._runtime.taken += taken
        self.assume(what)

    def configured(self, config: dict[str, Any]) -> None:
        """DeepSpeed is asked for, with this configuration."""
        self._records.emit("configured", config=config)

    def draws(self) -> None:
        """A batch is drawn."""
        self._opened = True
        self.reach("data")
        self._runtime.work += 1

    @contextmanager
    def calling(self, part: str = "") -> Iterator[None]:
        """A model, or what is compiled, is called: the loops in it are its own."""
        if part:
            self._called |= part == "forward"
            self.reach(part)
        self._runtime.depth += 1
        self._runtime.work += 1
        try:
            yield
        finally:
            self._runtime.depth -= 1

    def _enter(self, module: Any, _inputs: Any) -> None:
        if not self._runtime.depth:
            self._called |= module.training
            self.reach("forward" if module.training else "validation")
        self._runtime.depth += 1
        self._runtime.work += 1

    def _leave(self, _module: Any, _inputs: Any, _output: Any) -> None:
        self._runtime.depth -= 1

    def _stepped(self, _optimizer: Any, _inputs: Any, _options: Any) -> None:
        self.stepped()

    def stepped(self) -> None:
        """An optimizer steps."""
        self._runtime.steps += 1
        self._runtime.work += 1
        self.reach("optimizer step")

    def telling(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """A function that is a part of the job."""

        @functools.wraps(function)
        def telling(*arguments: Any, **options: Any) -> Any:
            self.reach(part)
            return function(*arguments, **options)

        return telling

    def saving(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """A function that saves its first argument to its second."""

        @functools.wraps(save)
        def saving(obj: Any, f: Any, *arguments: Any, **options: Any) -> Any:
            self.reach("save")
            answer = save(obj, f, *arguments, **options)
            if path := path_of(f):
                self.saved.append(path)
            return answer

        return saving

    def _checking(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """Backward, which a loss that is no number reaches unseen."""

        @functools.wraps(backward)
        def checking(tensors: Any, *arguments: Any, **options: Any) -> Any:
            self.reach("backward")
            self._runtime.visited.add(self._roots.place())
            # An infinite loss is what a gradient scaler looks for.
            if self.real and _is_nan(tensors):
                path, line = self._roots.place()
                self._records.emit("nan", path=path, line=line)
            return backward(tensors, *arguments, **options)

        return checking

    def _scheduled(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A scheduler's step, which its constructor calls as well."""

        @functools.wraps(step)
        def scheduled(scheduler: Any, *arguments: Any, **options: Any) -> Any:
            caller = sys._getframe(1).f_code
            if caller.co_name not in _CONSTRUCTING:
                self.reach("schedule")
            if self._roots.holds(caller.co_filename):
                self._runtime.steps_scheduler(scheduler)
            return step(scheduler, *arguments, **options)

        return scheduled


def _stack(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _is_trainer(frame: FrameType) -> bool:
    """Whether a library's trainer is at work."""
    code = frame.f_code
    trainer = code.co_filename.endswith(_TRAINERS) or "sklearn" in code.co_filename
    return code.co_name in ("fit", "train") and trainer


def _is_nan(tensor: Any) -> bool:
    return getattr(tensor, "numel", int)() == 1 and math.isnan(float(tensor.detach()))
