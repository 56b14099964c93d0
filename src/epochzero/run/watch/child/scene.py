"""One iteration or one evaluation: what was seen in it, until it is recorded."""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child import attention, batches
from epochzero.run.watch.child.codes import Codes
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.relations import relations
from epochzero.run.watch.child.statistics import (
    ACTIVATION,
    DISTRIBUTION,
    VALUES,
    Look,
    activation,
    distribution,
    values,
)

MOST_LAYERS = 400
MOST_SCALARS = 16
MOST_CLIPPINGS = 8
MOST_SOFTMAXES = 16
_SMALL = 1 << 18
"""Numbers in a tensor that may be copied."""
# Where a function is as good as constant.
_SATURATION = {
    "hardtanh": (-0.999, 0.999),
    "relu6": (-1.0, 5.999),
    "sigmoid": (0.02, 0.98),
    "softmax": (0.001, 0.999),
    "tanh": (-0.98, 0.98),
}
_NEVER = (float("-inf"), float("inf"))
_OF_CLASSES = (
    "cross_entropy",
    "nll_loss",
    "SparseCategoricalCrossentropy",
    "CategoricalCrossentropy",
)
_OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_OF_TWO = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_LABELS = re.compile(r"(^|[._])(labels?|targets?)$")
"""Arguments of a model that computes its own loss, as those of Transformers do."""
_NAME = re.compile(r"""([A-Za-z_][\w.]*(?:\[["']\w+["']\])?)\s*(?:[-+*/]?=(?!=)|\.append\()""")


class Scene:
    """Collects what is seen; holds no tensor of the job, but copies of small inputs.

    Attributes:
        evaluating: whether it is an evaluation.
        looking: whether it is looked at closely.
        calls: of models.
        training: the mode of the first model called.
        split: of an evaluation, the lines that are known to call a model by turns.
        module: the module that an evaluation called first.
    """

    def __init__(
        self, *, evaluating: bool, looking: bool, held: Callable[[], Collection[int]] = tuple
    ) -> None:
        self._held = held
        self.evaluating = evaluating
        self.looking = looking
        self.calls = 0
        self.training: bool | None = None
        self.split: set[Any] = set()
        self.module: weakref.ref[Any] | None = None
        self._began: dict[int, Any] = {}
        self._look = Look()
        self._record: dict[str, Any] = {}
        self._layers: dict[str, dict[str, Any]] = {}
        self._order: list[list[str]] = []
        self._makers: ByIdentity[str] = ByIdentity()
        self._batch: list[tuple[weakref.ref[torch.Tensor], torch.Tensor | None]] = []
        self._output: weakref.ref[torch.Tensor] | None = None
        self._sums: dict[str, list[tuple[torch.Tensor, float]]] = {}
        self._read: dict[tuple[str, int], list[float]] = {}
        self._notes: dict[str, int] = {}
        self._clippings: list[dict[str, Any]] = []
        self._codes = Codes()
        self.has_loss = False

    @property
    def measured(self) -> bool:
        """Whether a loss or a metric was computed."""
        return bool(self._sums or self._read)

    @property
    def is_worth_a_record(self) -> bool:
        """Whether anything was seen that is worth a record."""
        return self.looking or self.measured

    # Which evaluation -----------------------------------------------------------------------------

    def begins_at(
        self, module: Any, lines: Any, loader: int | None, place: Any, split: Any
    ) -> None:
        """An evaluation begins with the call of a module at these lines."""
        self.split = split | {lines}
        self.module = weakref.ref(module)
        self._began[id(module)] = lines
        self._record["place"] = place
        self._record["loader"] = loader

    def is_other(self, module: Any, lines: Any) -> bool:
        """Whether a call of a module at these lines is of another evaluation.

        A function that is called for training data and for validation data, or another loader. Lines
        that take turns, as of a decoder's first step and its others, are of the same.
        """
        known = self._began.setdefault(id(module), lines)
        return known != lines and lines not in self.split

    # Forward --------------------------------------------------------------------------------------

    def model_called(self, path: str, module: Any, args: Any, kwargs: Any) -> None:
        """The outermost call of a model."""
        if self.model_given(path, bool(module.training), [list(args), kwargs]):
            self._record["modes"] = {
                name: part.training
                for name, part in module.named_modules()
                if part.training is not module.training
            }

    def model_given(self, path: str, training: bool, inputs: Any) -> bool:
        """A model, perhaps of another library, was called with these inputs; whether they are the first to be looked at."""
        self.calls += 1
        if self.training is None:
            self.training = training
            self._record["model"] = path
        first = self.looking and not self._batch
        if first:
            named = batches.tensors_in(inputs)
            # A slice, or what ``.to(device)`` returns, is gone when the loss is known: of small ones a copy is compared with the target.
            self._batch = [
                (weakref.ref(t), t.detach().clone() if t.numel() <= _SMALL else None)
                for name, t in named
                if not _LABELS.search(name)
            ]
            self._record["inputs"] = batches.inputs(self._look, inputs)
        return first

    def source(self, args: Any) -> str:
        """The path of the layer that made the first argument; empty where it is not known."""
        first = args[0] if args else None
        return (self._makers.get(first) or "") if isinstance(first, torch.Tensor) else ""

    def _inputs(self) -> list[torch.Tensor]:
        found = ((ref(), copy) for ref, copy in self._batch)
        return [t for alive, copy in found if (t := copy if alive is None else alive) is not None]

    def model_left(self, output: Any) -> None:
        """The outermost call has ended."""
        tensor = next((tensor for _, tensor in batches.tensors_in([output])), None)
        if tensor is None:
            return
        if "output" not in self._record:
            self._output = weakref.ref(tensor)
            self._describe_output(tensor)

    def layer_called(self, path: str, kind: str, output: Any, source: str) -> None:
        """A layer without layers of its own has given its output, of what another one made."""
        tensor = next((tensor for _, tensor in batches.tensors_in([output])), None)
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return
        self._makers.set(tensor, path)
        self._add_layer(path, kind, tensor, source)

    def activated(self, name: str, args: Any, kwargs: Any, output: Any, within: str) -> None:
        """A function of torch was called in a forward pass; it belongs to the layer before it.

        Between calls of models, as of the parts of one that has no ``forward``, only what is done with
        the output of a layer counts, and only before the loss: what follows is a metric.
        """
        if not isinstance(output, torch.Tensor) or not output.numel():
            return
        source = args[0] if args else kwargs.get("input")
        before = (self._makers.get(source) or within).partition(":")[0]
        if not before or (not within and self.has_loss):
            return
        path = f"{before}:{name}"
        self._makers.set(output, path)
        described = self._add_layer(path, name, output, before)
        if described is not None and not within:
            described["outside"] = True
        if name == "dropout" and described is not None:
            given = {
                "p": 0.5,
                "training": True,
                **dict(zip(("p", "training"), args[1:3], strict=False)),
                **kwargs,
            }
            described["rate"], described["drops"] = float(given["p"]), bool(given["training"])
            # Who drops in evaluations on purpose, to see how sure a model is, says so.
            if described["drops"] and len(args) < 3 and "training" not in kwargs:
                described["by_default"] = place()

    def normalized(self, name: str, args: Any, kwargs: Any, output: Any, layer: str) -> None:
        """A softmax was taken: over which dimension of which shape, and where; of attention how its weights lie."""
        dimension = kwargs.get("dim", args[1] if len(args) > 1 else None)
        found = self._record.setdefault("softmaxes", [])
        if not isinstance(output, torch.Tensor) or len(found) >= MOST_SOFTMAXES:
            return
        if name == "scaled_dot_product_attention":
            weights = attention.weights(*args, **kwargs)
            if weights is None:
                return
            dimension, output = -1, weights
        if dimension is None:  # As torch.nn.functional chooses it.
            dimension = 0 if output.dim() in (0, 1, 3) else 1
        where, shape = place(), list(output.shape)
        known = next((s for s in found if (s["layer"], s["place"]) == (layer, where)), None)
        if known is None and shape:
            known = {
                "function": name,
                "dim": dimension % len(shape),
                "shape": shape,
                "layer": layer,
                "place": where,
            }
            found.append(known)
        if known is not None and name != "log_softmax" and known["dim"] == len(shape) - 1 > 0:
            tokens = self._inputs()
            for what, mass in attention.masses(output, tokens).items():
                # A layer may be called with several batches: the least decides.
                known[what] = min(mass, known.get(what, mass))

    def value(self, name: str, value: Any) -> None:
        """A tensor that the user has chosen; of what holds several the first."""
        tensor = next((tensor for _, tensor in batches.tensors_in([value])), None)
        if not self.looking or tensor is None:
            return
        found = self._record.setdefault("values", {})
        if name not in found and len(found) < MOST_LAYERS:
            found[name] = {"shape": list(tensor.shape)}
            self._look.add(found[name], DISTRIBUTION, distribution(tensor))

    def _add_layer(
        self, path: str, kind: str, tensor: torch.Tensor, source: str
    ) -> dict[str, Any] | None:
        if path in self._layers or len(self._layers) >= MOST_LAYERS:
            return None
        described: dict[str, Any] = {
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).replace("torch.", ""),
            "source": source,
        }
        bounds = _SATURATION.get(kind.lower(), _NEVER)
        self._look.add(described, ACTIVATION, activation(tensor, *bounds))
        self._layers[path] = described
        self._order.append([path, kind])
        return described

    # Loss and metrics -----------------------------------------------------------------------------

    def loss_called(self, name: str, value: Any, arguments: Mapping[str, Any]) -> None:
        """A loss function was called."""
        output, target = arguments["input"], arguments.get("target")
        self.has_loss = True
        count = float(output.shape[0]) if output.dim() else 1.0
        if self.evaluating:
            self._sum("loss", value.detach().mean(), count)
            if (
                name in _OF_NUMBERS
                and isinstance(target, torch.Tensor)
                and output.shape == target.shape
            ):
                self._codes.add_numbers(output, target)
        if self.evaluating or self.looking:
            right = _right(name, output, target)
            if right is not None:
                self._sum("accuracy", right, count)
            if right is not None and self.evaluating and name in _OF_CLASSES:
                self._codes.add_classes("loss", output.argmax(1), arguments["target"])
        if not self.looking or "target" in self._record:
            return
        self._record["function"] = name
        is_output = self._output is not None and self._output() is output
        self._record["direct"] = is_output or self._makers.get(output) is not None
        self._record["relations"] = relations(name, output, arguments, self._inputs(), self._held)
        if self._output is None or self._output() is not output:
            self._describe_output(output)
        if isinstance(target, torch.Tensor) and target.numel():
            self._record["target"] = batches.labels(self._look, target)
            self._compare_with_inputs(target)

    def own_loss(self, names: dict[str, Any]) -> None:
        """A loss that the program computes itself: its target is what among its variables has the first
        size of the model's output, and is no input, where that is one tensor only.
        """
        shape = self._record.get("output", {}).get("shape")
        if not shape or self.has_loss:
            return
        inputs = self._inputs()
        others = {
            id(value): value
            for value in names.values()
            if isinstance(value, torch.Tensor)
            and list(value.shape[:1]) == shape[:1]
            and 0 < value.dim() <= len(shape)
            and not value.requires_grad
            and not any(value is tensor for tensor in inputs)
        }
        if len(others) == 1:
            target = next(iter(others.values()))
            self._record["target"] = batches.labels(self._look, target)
            self._compare_with_inputs(target)

    def _describe_output(self, output: torch.Tensor) -> None:
        self._record["output"] = found = {"shape": list(output.shape)}
        self._look.add(found, VALUES, values(output))
        if output.is_complex():
            return
        rows = output.detach()[:256] if output.dim() else output.detach()
        if output.dim() > 1 and output.shape[1] > 1:
            sums = rows.float().sum(1)
            numbers = torch.stack([sums.mean(), sums.std(unbiased=False)])
            self._look.add(found, ("sums", "sums_spread"), numbers)
        if output.dim() and output.shape[0] > 1:
            flat = rows.reshape(rows.shape[0], -1)[:, :256].float()
            between = flat.std(0, unbiased=False).mean()
            self._look.add(found, ("between_examples",), between.reshape(1))

    def _compare_with_inputs(self, target: torch.Tensor) -> None:
        batch = next((tensor for tensor in self._inputs() if tensor.dim() > 1), None)
        if batch is None or not self._record["target"].get("whole"):
            return
        if target.numel() == target.shape[:1].numel() == batch.shape[0]:
            self._record["likeness"] = batches.likeness(batch, target)
            of_rows = target.detach().reshape(-1)[: batches.MOST_ROWS].tolist()
            self._record["row_labels"] = [int(value) for value in of_rows]

    def compared(self, left: Any, right: Any, result: Any) -> None:
        """Predictions were compared with labels, as accuracy is computed."""
        same = isinstance(right, torch.Tensor) and left.shape == right.shape and left.dim() > 0
        if same and not left.is_floating_point() and not right.is_floating_point():
            self._sum("agreement", result.float().mean(), float(left.numel()))
            self._codes.add_classes("compared", left, right)

    def read(self, path: str, line: int, value: Any) -> None:
        """The program has read a number at this line."""
        if (path, line) in self._read or len(self._read) < MOST_SCALARS:
            sums = self._read.setdefault((path, line), [0.0, 0.0, 0.0])
            sums[0] += 1
            sums[1] += float(value)
            sums[2] = float(value)

    def note(self, name: str, count: int) -> None:
        """Something has happened that is counted."""
        self._notes[name] = self._notes.get(name, 0) + count

    def clipped(self, line: str, limit: float | None, norm: Any) -> None:
        """Gradients of this norm were clipped."""
        if len(self._clippings) < MOST_CLIPPINGS:
            found: dict[str, Any] = {"line": line, "limit": limit}
            if isinstance(norm, torch.Tensor):
                self._look.add(found, ("norm",), norm.detach().float().reshape(1))
            self._clippings.append(found)

    def _sum(self, name: str, value: torch.Tensor, count: float) -> None:
        self._sums.setdefault(name, []).append((value.detach().float().reshape(1), count))

    # The end --------------------------------------------------------------------------------------

    def ended(self) -> dict[str, Any]:
        """What was seen, numbers fetched."""
        found, self._record = self._record, {}
        means: dict[str, dict[str, float]] = {}
        for name, parts in self._sums.items():
            numbers = torch.cat([value for value, _ in parts])
            self._look.add(means.setdefault(name, {}), list(map(str, range(len(parts)))), numbers)
        self._look.read()
        for name, parts in self._sums.items():
            total = sum(count for _, count in parts) or 1.0
            of_parts = zip(means[name].values(), parts, strict=True)
            found[name] = sum(value * count for value, (_, count) in of_parts) / total
            found["examples"] = total
            if name == "loss" and len(set(means[name].values())) == 1:
                found["repeated"] = len(parts)
        found |= self._codes.found()
        for described in found.get("inputs", ()):
            if "rows" in described:
                described["rows"] = [f"{number:.9g}" for number in described["rows"].values()]
        if self._layers:
            found["layers"], found["order"] = self._layers, self._order
        if self._read:
            found["scalars"] = [_scalar(*line, *of) for line, of in self._read.items()]
        if self._clippings:
            found["clippings"] = self._clippings
        return {"calls": self.calls, "training": self.training, **self._notes, **found}


def _scalar(path: str, line: int, count: float, total: float, last: float) -> dict[str, Any]:
    text = linecache.getline(path, line).strip()[:200]
    named = _NAME.match(text)
    return {
        "line": f"{path}:{line}",
        "text": text,
        "name": named.group(1) if named else "",
        "count": int(count),
        "mean": total / count,
        "last": last,
    }


def _right(name: str, output: torch.Tensor, target: Any) -> torch.Tensor | None:
    """The share of examples whose class is predicted; None where that is no such loss."""
    if not isinstance(target, torch.Tensor):
        return None
    if name in _OF_CLASSES and output.dim() > 1 and not target.is_floating_point():
        predicted = output.detach().argmax(1)
        if predicted.shape == target.shape:
            valid = target >= 0
            return ((predicted == target) & valid).float().sum() / valid.float().sum().clamp(min=1)
    if name in _OF_TWO and output.shape == target.shape:
        bound = 0.5 if name == "binary_cross_entropy" else 0.0
        return ((output.detach() > bound) == (target > 0.5)).float().mean()
    return None
