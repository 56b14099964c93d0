"""The functions of the job that libraries call: items of data sets, hooks of trainers, targets of processes.

Only calls that follow from how a library is used are walked; its computations are not simulated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice

from epochzero.check.program import phases
from epochzero.check.program.callbacks import INSPECTS, counts
from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Function,
    LibraryResult,
    Member,
    Object,
    V,
)
from epochzero.check.program.values import Anything, Constant

FLUENT = frozenset(
    """
    to cuda cpu half float double bfloat16 eval train requires_grad_ to_empty apply share_memory
    compile
    """.split()
)
"""Methods of modules that return the module itself."""
_LOADER = ("DataLoader", "DataLoader2", "StatefulDataLoader")
_DATASET_HOOKS = ("__len__", "__getitem__", "__iter__", "__getitems__")
_ITERABLE_HOOKS = ("__len__", "__iter__")
_LOADER_FUNCTIONS = ("collate_fn", "worker_init_fn", "sampler", "batch_sampler")
_DEEPEST = 4
_MOST_SEEN = 200
"""Limit of the nested objects that are inspected."""

_SETTING_UP = ("prepare_data", "setup")
_LOADER_HOOKS = {
    "fit": ("train_dataloader", "val_dataloader"),
    "validate": ("val_dataloader",),
    "test": ("test_dataloader",),
}
"""The data loaders that Lightning's trainer requests, by its method."""
_ALL_LOADER_HOOKS = ("train_dataloader", "val_dataloader", "test_dataloader")
_DATA_MODULE = re.compile(r"^(lightning|pytorch_lightning)\b.*\.LightningDataModule$")
_FIT_HOOKS = tuple(
    """
    configure_model configure_optimizers on_fit_start on_train_start on_train_epoch_start
    on_train_batch_start training_step compute_loss train_step on_train_batch_end
    on_validation_epoch_start validation_step prediction_step compute_metrics test_step
    on_validation_epoch_end validation_epoch_end on_train_epoch_end training_epoch_end
    on_epoch_end on_save_checkpoint on_train_end on_fit_end forward
    """.split()
)
_TEST_HOOKS = ("test_step", "predict_step", "on_test_epoch_end", "test_epoch_end", "forward")
_RUNNERS = {
    "torch.multiprocessing.spawn": ("fn", 1),
    "torch.multiprocessing.start_processes": ("fn", 1),
    "torch_xla.distributed.xla_multiprocessing.spawn": ("fn", 1),
}
"""Functions that call their first argument, with the number of arguments that they pass before ``args``."""
_STARTS = ("__call__", "run", "main", "cli")
"""Methods by which an application of a library starts its registered functions."""
_READS_ALL = tuple(f"builtins.{name}" for name in ("next", "list", "tuple", "set", "dict", "sum"))
_PROCESSES = ("Process", "Thread")
_MAINS = ("absl.app.run", "tensorflow.compat.v1.app.run", "tensorflow.app.run", "asyncio.run")


def is_dataset(cls: Class) -> bool:
    """Whether a class of the job is a data set, by its base classes."""
    return any(name.rpartition(".")[2].endswith("Dataset") for name in cls.externals())


def is_iterable_dataset(cls: Class) -> bool:
    """Whether data loaders iterate over the data set and never index it."""
    return any(name.rpartition(".")[2] == "IterableDataset" for name in cls.externals())


def called(machine: Core, name: str, given: Arguments, result: V, node: ast.expr) -> None:
    """Walk the functions of the job that a function or class of a library calls."""
    last = name.rpartition(".")[2]
    if last in _LOADER and isinstance(result, LibraryResult):
        machine.loaders.append(result)
        return
    if name in _RUNNERS:
        _spawned(machine, given, node, *_RUNNERS[name])
    elif last in _PROCESSES and "target" in given.keywords:
        with (
            nullcontext() if last == "Process" else machine.on(replace(machine.path, is_aside=True))
        ):
            _started(machine, given, node)
    elif name in _READS_ALL:
        for argument in given.positional:
            consume(machine, argument, node, certain=True)
    elif name in _MAINS and given.positional and isinstance(given.positional[0], Function):
        machine.read_flags()
        machine.apply(given.positional[0], Arguments([], {}, False), node)
    elif name not in INSPECTS:
        machine.callbacks(given, node, counts(name, given.positional, given.keywords))


def _spawned(machine: Core, given: Arguments, node: ast.expr, name: str, own: int) -> None:
    function = given.get(0, name)
    arguments = given.get(1, "args")
    items, complete, _ = machine.iterated_known(arguments)
    complete = complete or arguments is None
    rank: list[V] = [Anything("the number of a process")] * own
    if function is not None:
        machine.apply(function, Arguments([*rank, *(items or ())], {}, complete), node)


def _started(machine: Core, given: Arguments, node: ast.expr) -> None:
    items, complete, _ = machine.iterated_known(given.keywords.get("args"))
    complete = complete or "args" not in given.keywords
    arguments = Arguments([*(items or ())], {}, complete and "kwargs" not in given.keywords)
    machine.possibly(given.keywords["target"], node, arguments)


def method_called(machine: Core, owner: V, name: str, given: Arguments, node: ast.expr) -> None:
    """Walk the functions of the job that a method of a library's object calls."""
    dotted = machine.method_name(owner, name)
    if name in _STARTS and isinstance(owner, LibraryResult):
        for function in machine.registered.get(owner, ()):
            machine.possibly(function, node)
    if name == "__call__":
        for module in islice(_objects(owner), _MOST_SEEN):
            if not is_dataset(module.cls):
                _hooks(machine, module, ("forward", "call"), node)
    elif phases.is_fit(dotted) or (
        name == "train" and isinstance(owner, Object) and _trains(owner)
    ):
        _fitted(machine, owner, given, node, name, _FIT_HOOKS)
    elif phases.is_verdict(dotted) or name in ("test", "validate"):
        _fitted(machine, owner, given, node, name, _TEST_HOOKS)
    machine.callbacks(given, node, counts(dotted, given.positional, given.keywords))


def _trains(owner: Object) -> bool:
    return any(base.endswith("Trainer") for base in owner.cls.externals())


def _fitted(
    machine: Core, owner: V, given: Arguments, node: ast.expr, method: str, hooks: tuple[str, ...]
) -> None:
    """Walk the loop of a trainer over its module and data."""
    phase = machine.frame.phase
    found = [*islice(_objects(owner), _MOST_SEEN)]
    for keyword in (*given.positional, *given.keywords.values()):
        found += islice(_objects(keyword), _MOST_SEEN)
        consume(machine, keyword, node)
    consume(machine, owner, node)
    data = _set_up(machine, given, method, node)
    for value in dict.fromkeys(found):
        if not is_dataset(value.cls):
            before = () if value is data else _SETTING_UP
            _hooks(machine, value, (*before, *_LOADER_HOOKS.get(method, _ALL_LOADER_HOOKS)), node)
    machine.frame.phase = "training" if hooks is _FIT_HOOKS else "evaluation"
    begin = len(machine.recording)
    for value in dict.fromkeys(found):
        if not is_dataset(value.cls):
            _hooks(machine, value, hooks, node)
    machine.frame.phase = phase
    if hooks is _FIT_HOOKS:
        machine.recording.train_from(begin)


def _set_up(machine: Core, given: Arguments, method: str, node: ast.expr) -> Object | None:
    """Return the data module whose ``setup`` Lightning's trainer calls with the name of its own method."""
    data = given.keywords.get("datamodule")
    if isinstance(data, Object) and any(map(_DATA_MODULE.search, data.cls.externals())):
        _hooks(machine, data, ("prepare_data",), node)
        if function := _method(data, "setup"):
            machine.apply(BoundFunction(data, function), Arguments([Constant(method)]), node)
        return data
    return None


def _hooks(machine: Core, instance: Object, names: Iterable[str], node: ast.expr) -> None:
    for name in names:
        if function := _method(instance, name):
            machine.possibly(BoundFunction(instance, function), node)


def _method(instance: Object, name: str) -> Function | None:
    """The method that the lookup order of the class finds first."""
    defined = (cls.names.get(name) for cls in instance.cls.line())
    return next((found for found in defined if isinstance(found, Function)), None)


def consume(machine: Core, value: V, node: ast.expr, certain: bool = False) -> None:
    """Walk the methods of the data sets that the data loaders in a value read, once."""
    if not machine.loaders:
        return
    there = set(islice(_made(value), _MOST_SEEN))
    for loader in [made for made in machine.loaders if made in there]:
        machine.loaders.remove(loader)
        for argument in (*loader.arguments, *loader.keywords.values()):
            for dataset in islice(_objects(argument), _MOST_SEEN):
                _read(machine, dataset, node, certain)
        for name in _LOADER_FUNCTIONS:
            if (function := loader.keywords.get(name)) is not None:
                machine.callbacks(Arguments([function]), node, {0: 1})


def _read(machine: Core, dataset: Object, node: ast.expr, certain: bool) -> None:
    for name in _ITERABLE_HOOKS if is_iterable_dataset(dataset.cls) else _DATASET_HOOKS:
        for cls in dataset.cls.line():
            if isinstance(found := cls.names.get(name), Function):
                index: list[V] = [] if name in ("__len__", "__iter__") else [Anything("an index")]
                given = Arguments(index)
                if certain:
                    machine.apply(BoundFunction(dataset, found), given, node)
                else:
                    machine.possibly(BoundFunction(dataset, found), node, given)
                break


def _made(value: V, depth: int = 0) -> Iterator[LibraryResult]:
    """Yield the library objects in a value."""
    if depth > _DEEPEST:
        return
    if isinstance(value, LibraryResult):
        yield value
    for inner in _within(value):
        yield from _made(inner, depth + 1)


def _objects(value: V, depth: int = 0) -> Iterator[Object]:
    """Yield the job's own objects in a value."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Object):
        yield value
        if not is_dataset(value.cls):
            return
    for inner in _within(value):
        yield from _objects(inner, depth + 1)


def _within(value: V) -> Iterator[V]:
    match value:
        case LibraryResult():
            yield from value.arguments
            yield from value.keywords.values()
        case Box():
            yield from value.content.values
        case Member():
            yield value.owner
