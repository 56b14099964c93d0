"""Follows a step operator by operator, forward and backward, to the origin of its failure.

Each operator that torch runs is recorded with its module, its line, and the ranges of its inputs and outputs. A
bad result is traced back through the operators to the one that computed it from finite inputs. For a backward
operator, module and line are those of its forward operator.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from epochzero.run.replay.child.structure import encode
from epochzero.run.replay.child.tensors import is_kept
from epochzero.run.watch.child.places import place

SCHEMA = "epochzero.walk/1"
MOST_OPERATORS = 200_000
MOST_READ = 1 << 24
"""Largest number of elements of a tensor that is inspected and recomputed in float64."""
MOST_KEPT_BYTES = 1 << 28
_AROUND = 3
_MOST_CHAIN = 12
Record = dict[str, Any]
Call = dict[str, Any]


class Walk:
    """Records the operators of this thread between `begin` and `end`."""

    def __init__(self, models: Iterable[torch.nn.Module]) -> None:
        """Create an empty record.

        Args:
            models: whose parameters and buffers are reported by name.
        """
        self._models = models
        self._records: list[Record] = []
        self._made: dict[int, int] = {}
        self._named: dict[int, str] = {}
        self._forward: dict[int, Record] = {}
        self._modules = _Modules(self.module)
        self._calls: OrderedDict[int, Call] = OrderedDict()
        self._raised: list[tuple[BaseException, Record, Call]] = []
        self._modes: list[Any] = []
        self._pid = os.getpid()
        self._is_ours = False

    @property
    def has_begun(self) -> bool:
        """Whether recording has started."""
        return bool(self._modes)

    def begin(self) -> None:
        """Start recording."""
        self._modules.listen()
        self._modes = [_Functions(self), _Operators(self)]
        for mode in self._modes:
            mode.__enter__()

    def end(self) -> None:
        """Stop recording and restore everything."""
        for mode in reversed(self._modes):
            # The mode is already popped if it observes the current call.
            with suppress(RuntimeError):
                mode.__exit__(None, None, None)
        self._modules.close()

    # Operators ------------------------------------------------------------------------------------

    def operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and record it."""
        if self._is_ours or os.getpid() != self._pid or len(self._records) >= MOST_OPERATORS:
            return func(*args, **kwargs)
        record = self._described(func, args, kwargs)
        mutable = func._schema.is_mutable
        before = _copied((args, kwargs)) if mutable else (args, kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self._raised.append((error, record, _call("operator", str(func), before)))
            raise
        outputs = _tensors(result)
        held = {_storage(tensor) for tensor in _tensors((args, kwargs))}
        if not mutable and all(_storage(output) in held for output in outputs):
            return result  # a view, or no computation, such as a range of the profiler
        record["outputs"] = [_range(output) for output in outputs]
        if "empty" in str(func):  # whatever lay in that memory
            record["outputs"] = [output | {"nan": 0, "inf": 0} for output in record["outputs"]]
        record["float64"] = None if mutable else _in_float64(func, args, kwargs, outputs)
        number = record["number"] = len(self._records)
        self._records.append(record)
        for output in outputs:
            self._made[_storage(output)] = number
        if not record["backward"]:
            self._forward[_sequence()] = record
        if _makes_it(record):
            self._keep(number, _call("operator", str(func), before))
        return result

    def _described(self, func: Any, args: Any, kwargs: Any) -> Record:
        backward = torch._C._current_graph_task_id() != -1
        of = self._forward.get(_sequence_of_node()) if backward else None
        flat = tree_flatten((args, kwargs))[0]
        return {
            "number": len(self._records),
            "operator": str(func).removesuffix(".default"),
            "backward": backward,
            "module": of["module"] if of else self._modules.path,
            "place": of["place"] if of else place(),
            "of": of["operator"] if of else None,
            "inputs": [self._input(value) for value in flat if isinstance(value, torch.Tensor)],
            "constant": any(isinstance(v, float) and not math.isfinite(v) for v in flat),
            "outputs": [],
            "float64": None,
        }

    def _input(self, tensor: torch.Tensor) -> dict[str, Any]:
        storage = _storage(tensor)
        made = self._made.get(storage)
        return {
            **_range(tensor),
            "made_by": made,
            "name": None if made is not None else self._name(storage),
        }

    def _name(self, storage: int) -> str | None:
        """Return the parameter or buffer with this storage."""
        if storage not in self._named:
            self._named = {
                _storage(tensor): name
                for model in self._models
                for name, tensor in (*model.named_parameters(), *model.named_buffers())
            }
        return self._named.setdefault(storage, "") or None

    def _keep(self, number: int, call: Call) -> None:
        self._calls[number] = call
        while (
            len(self._calls) > 1 and sum(c["bytes"] for c in self._calls.values()) > MOST_KEPT_BYTES
        ):
            self._calls.popitem(last=False)

    # Functions and modules ------------------------------------------------------------------------

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of torch; record it with its arguments if it raises."""
        try:
            return func(*args, **kwargs)
        except Exception as error:
            name = resolve_name(func) or ""
            if name.startswith("torch.") and "backward" not in name:
                self._note(error, "function", name, (args, kwargs))
            raise

    def module(self, error: Exception, module: torch.nn.Module, given: Any) -> None:
        """A module has raised an exception."""
        if type(module).__module__.startswith("torch.nn.modules."):
            self._note(error, "module", f"torch.nn.{module!r}", given)

    def _note(self, error: Exception, kind: str, name: str, given: Any) -> None:
        """Record a call that raised; operators that this runs are not the job's."""
        self._is_ours = True
        try:
            record = self._described(name, *given)
            record["operator"] = name.partition("(")[0]
            self._raised.append((error, record, _call(kind, name, given)))
        finally:
            self._is_ours = False

    # Results --------------------------------------------------------------------------------------

    def found(self, error: BaseException | None) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return the origin of the failure as JSON data, and the tensors that its calls refer to.

        Args:
            error: exception that ended the job; None if there was none.
        """
        raised = [(e, r, c) for e, r, c in self._raised if _is_part(e, error)]
        why, chain = ("raised", [raised[0][1]]) if raised else self._followed()
        culprit = chain[0] if chain else None
        number = culprit["number"] if culprit else 0
        kept = self._calls.get(number) if culprit else None
        calls = [call for _, _, call in raised] or [call for call in (kept,) if call is not None]
        tensors: dict[str, torch.Tensor] = {}
        for n, call in enumerate(calls):
            tensors |= {f"{n}.{name}": tensor for name, tensor in call["tensors"].items()}
        recorded = {
            "schema": SCHEMA,
            "operators": len(self._records),
            "why": why,
            "error": _summary(raised[0][0]) if raised else "",
            "culprit": culprit,
            "before": self._records[max(0, number - _AROUND) : number],
            "chain": chain,
            "sources": self._sources(culprit),
            "calls": [{k: c[k] for k in ("kind", "name", "given")} for c in calls],
        }
        return recorded, tensors

    def _sources(self, culprit: Record | None) -> list[Record]:
        """Return the operators that produced the inputs of an operator."""
        made = {value["made_by"] for value in culprit["inputs"]} if culprit else set()
        return [self._records[number] for number in sorted(made - {None})]

    def _followed(self) -> tuple[str, list[Record]]:
        """Return the operators from the first bad value to the last, the origin first, and what is wrong with it."""
        bad = [
            r
            for r in self._records
            if any(output["nan"] or output["inf"] for output in r["outputs"])
        ]
        losses = [r for r in bad if not r["backward"] and not r["outputs"][0]["shape"]]
        gradients = [r for r in bad if any(output["nan"] for output in r["outputs"])]
        if losses or gradients:
            return "not_finite", self._back(losses[0] if losses else gradients[-1])
        differing = (r for r in self._records if r["float64"] and r["float64"]["differs"])
        first = next(differing, None)
        return ("differs", [first]) if first else ("nothing", [])

    def _back(self, record: Record) -> list[Record]:
        chain = [record]
        while (before := self._bad_source(chain[-1])) is not None:
            chain.append(before)
        chain.reverse()
        return chain if len(chain) <= _MOST_CHAIN else [*chain[: _MOST_CHAIN - 1], chain[-1]]

    def _bad_source(self, record: Record) -> Record | None:
        """Return the operator that produced a bad input of this one; masks of infinities are intended."""
        for kind in ("nan", "inf"):
            for value in record["inputs"]:
                number = value["made_by"]
                if not value[kind] or number is None or number >= record["number"]:
                    continue
                source: Record = self._records[number]
                if not source["constant"]:
                    return source
        return None


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Observes each operator that torch runs in this thread."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._walk = walk

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._walk.operator(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Observes each torch function that the program calls."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        self._walk = walk

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._walk.function(func, args, kwargs or {})


class _Modules:
    """Tracks the active module."""

    def __init__(self, raised: Callable[[Exception, torch.nn.Module, Any], None]) -> None:
        self._raised = raised
        self._stack: list[Any] = []
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []
        self._call: Any = None

    @property
    def path(self) -> str:
        """Return path within the model and class of the active module; empty outside of modules."""
        if not self._stack:
            return ""
        module = self._stack[-1]
        return f"{self._names.get(id(module), '')} ({type(module).__name__})".strip()

    def listen(self) -> None:
        """Start intercepting module calls."""
        self._call = torch.nn.Module._call_impl
        modules = self

        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            return modules.enter(self, args, kwargs)

        kind: Any = torch.nn.Module
        kind._call_impl = called

    def close(self) -> None:
        """Restore everything."""
        kind: Any = torch.nn.Module
        kind._call_impl = self._call

    def enter(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Call a module."""
        if not self._stack:
            self._names = {id(part): name for name, part in module.named_modules()}
        self._stack.append(module)
        try:
            return self._call(module, *args, **kwargs)
        except Exception as error:
            self._raised(error, module, (args, kwargs))
            raise
        finally:
            self._stack.pop()


def _makes_it(record: Record) -> bool:
    """Whether an operator produces non-finite or inaccurate output from valid inputs."""
    outputs, inputs = record["outputs"], record["inputs"]
    if record["float64"] and record["float64"]["differs"]:
        return True
    return any(
        any(output[kind] for output in outputs) and not any(argument[kind] for argument in inputs)
        for kind in ("nan", "inf")
    )


def _in_float64(func: Any, args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> Record | None:
    """Run an operator in float64 on the same inputs; None if that is impossible."""
    tags = getattr(torch, "Tag", None)
    seeded = tags is not None and tags.nondeterministic_seeded in func.tags
    tensors = _tensors((args, kwargs))
    floats = [t for t in tensors if t.is_floating_point()]
    if seeded or not floats or not outputs or not outputs[0].is_floating_point():
        return None
    if any(t.numel() > MOST_READ or t.device.type != "cpu" for t in tensors):
        return None
    if all(t.dtype is torch.float64 for t in floats):
        return None

    def wide(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        if is_float:
            return value.to(torch.float64, copy=True)
        return (
            torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
        )

    try:
        result = _tensors(func(*tree_map(wide, args), **tree_map(wide, kwargs)))[0]
    except Exception:
        return None  # has no float64, or its context has stored another type
    here = outputs[0].double()
    if result.shape != here.shape or not here.numel() or result.dtype is not torch.float64:
        return None
    scale = float(result.abs().max())
    finite = bool(torch.isfinite(result).all())
    if not torch.isfinite(here).all() or not finite:
        error = math.inf if finite else 0.0
    else:
        error = float((here - result).abs().max()) / (scale or 1.0)
    most = math.sqrt(torch.finfo(outputs[0].dtype).eps)
    return {"error": error if math.isfinite(error) else None, "finite": finite,
            "largest": scale if math.isfinite(scale) else None, "differs": error > most}  # fmt: skip


def _range(tensor: torch.Tensor) -> Record:
    """Shape, type and range of a tensor, and the number of elements that are not finite."""
    recorded: Record = {
        "shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."),
        "min": None, "max": None, "nan": 0, "inf": 0,
    }  # fmt: skip
    if not is_kept(tensor) or not 0 < tensor.numel() <= MOST_READ or tensor.is_complex():
        return recorded
    values = tensor.detach()
    if values.is_floating_point():
        values = values.float() if values.dtype is not torch.float64 else values
        recorded["nan"] = int(torch.isnan(values).sum())
        recorded["inf"] = int(torch.isinf(values).sum())
        if recorded["nan"] or recorded["inf"]:
            values = values[torch.isfinite(values)]
    if values.numel():
        recorded["min"], recorded["max"] = values.min().item(), values.max().item()
    return recorded


def _call(kind: str, name: str, given: Any) -> Call:
    """Return a call with copies of its arguments, as JSON data and tensors by name."""
    tensors: dict[str, torch.Tensor] = {}

    def put(tensor: torch.Tensor) -> str | None:
        if not is_kept(tensor) or tensor.numel() * tensor.element_size() > MOST_KEPT_BYTES:
            return None
        key = str(len(tensors))
        tensors[key] = tensor.detach().cpu().clone()
        return key

    args, kwargs = given
    recorded = {"args": [encode(_plain(a), put) for a in args],
            "kwargs": {k: encode(_plain(v), put) for k, v in kwargs.items()}}  # fmt: skip
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    return {"kind": kind, "name": name, "given": recorded, "tensors": tensors, "bytes": size}


def _plain(value: Any) -> Any:
    """Return an argument that is not data, such as a type, by its name in torch."""
    if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return {"torch": str(value)}
    return value


def _copied(value: Any) -> Any:
    return tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, value)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [v for v in tree_flatten(value)[0] if isinstance(v, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    try:
        number: int = tensor.untyped_storage()._cdata
        return number
    except (NotImplementedError, RuntimeError):
        return id(tensor)  # sparse tensors have none


def _sequence() -> int:
    """Return the number of the autograd node to which the active operator belongs."""
    return torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]


def _sequence_of_node() -> int:
    node: Any = torch._C._current_autograd_node()
    return node._sequence_nr() if node is not None else -1


def _summary(error: BaseException) -> str:
    """Return type and first line of an exception, as in a traceback."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".removesuffix(": ")


def _is_part(raised: BaseException, error: BaseException | None) -> bool:
    """Whether an exception is the one that ended the job, or its cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if error is raised:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
