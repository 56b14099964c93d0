"""Hooks between the job and torch: seven functions, each called a few times per step."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, dataloader, get_worker_info
from torch.utils.data._utils import fetch

from epochzero.run.replay.child.course import Course
from epochzero.run.watch.child.standin import shorten_traceback

_is_compiling = torch.compiler.is_compiling


def install(course: Course) -> None:
    """Install all hooks until the end of the process."""
    module: Any = torch.nn.Module
    module.__call__ = _calling(module.__call__, course)
    made: tuple[tuple[Any, Callable[[Any], None]], ...] = (
        (torch.optim.Optimizer, course.optimizers.add),
        (torch.optim.lr_scheduler.LRScheduler, course.schedulers.add),
        (torch.amp.GradScaler, course.scalers.add),
    )
    for kind, note in made:
        kind.__init__ = _making(kind.__init__, note)
    torch.autograd.backward = _going_back(torch.autograd.backward, course)
    register_optimizer_step_post_hook(lambda optimizer, *_: course.stepped(optimizer))
    loader: Any = DataLoader
    loader.__iter__ = _iterating(loader.__iter__, course)
    iterator: Any = dataloader._BaseDataLoaderIter
    iterator.__next__ = _delivering(iterator.__next__, course)
    iterator._next_index = _choosing(iterator._next_index, course)
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        kind.fetch = _fetching(kind.fetch, course)  # type: ignore[method-assign]
    os.register_at_fork(after_in_child=lambda: course.forked(_worker(course)))


def _worker(course: Course) -> Callable[[], str]:
    """Return a function that returns the name of the loader worker that a forked process is; empty for none."""
    number = course.iterators

    def name() -> str:
        worker = get_worker_info()
        return f"{number}-{worker.id}" if worker is not None else ""

    return name


def _calling(call: Any, course: Course) -> Any:
    @functools.wraps(call)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        # For a model of many modules, only the outermost call is followed.
        if _is_compiling() or course.within or not course.enters(self, args, kwargs):
            return call(self, *args, **kwargs)
        try:
            return call(self, *args, **kwargs)
        except BaseException as error:
            shorten_traceback(error)
            raise
        finally:
            course.leaves()

    return called


def _making(function: Any, note: Callable[[Any], None]) -> Any:
    @functools.wraps(function)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        function(self, *args, **kwargs)
        note(self)

    return made


def _going_back(function: Any, course: Course) -> Any:
    @functools.wraps(function)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if not _is_compiling():
            course.goes_back(args[0] if args else kwargs.get("tensors"))
        return function(*args, **kwargs)

    return backward


def _iterating(function: Any, course: Course) -> Any:
    @functools.wraps(function)
    def begun(self: Any) -> Any:
        # Workers are forked in this call and must know their loader.
        course.iterators += 1
        iterator = function(self)
        course.loader_begins(self, iterator)
        return iterator

    return begun


def _delivering(function: Any, course: Course) -> Any:
    @functools.wraps(function)
    def delivered(self: Any) -> Any:
        try:
            return course.delivers(self, function)
        except BaseException as error:
            shorten_traceback(error)
            raise

    return delivered


def _choosing(function: Any, course: Course) -> Any:
    @functools.wraps(function)
    def chosen(self: Any) -> Any:
        return course.chooses(self, function)

    return chosen


def _fetching(function: Any, course: Course) -> Any:
    @functools.wraps(function)
    def fetched(self: Any, indices: Any) -> Any:
        try:
            return course.fetches(self, indices, function)
        except BaseException as error:
            shorten_traceback(error)
            raise

    return fetched
