"""One iteration or one evaluation: what was seen in it, until it is told."""

from __future__ import annotations

from typing import Any

import torch

from epochzero.run.watch.child import batches
from epochzero.run.watch.child.statistics import (
    ACTIVATION,
    SPREAD,
    VALUES,
    Look,
    activation,
    spread,
    values,
)

__all__ = ["Scene"]

MOST_LAYERS = 400
# Where a function is as good as constant.
_SATURATION = {
    "hardtanh": (-0.999, 0.999),
    "relu6": (-1.0, 5.999),
    "sigmoid": (0.02, 0.98),
    "softmax": (0.001, 0.999),
    "tanh": (-0.98, 0.98),
}
_NEVER = (float("-inf"), float("inf"))
_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_TWO = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


class Scene:
    """Collects what is seen.

    Attributes:
        evaluating: whether it is an evaluation.
        looking: whether it is looked at closely.
        calls: of models.
        training: the mode of the first model called.
    """

    def __init__(self, *, evaluating: bool, looking: bool) -> None:
        self.evaluating = evaluating
        self.looking = looking
        self.calls = 0
        self.training: bool | None = None
        self._look = Look()
        self._told: dict[str, Any] = {}
        self._layers: dict[str, dict[str, Any]] = {}
        self._order: list[list[str]] = []
        self._makers: dict[int, str] = {}
        self._outputs: list[torch.Tensor] = []
        self._batch: list[tuple[str, torch.Tensor]] = []
        self._sums: dict[str, list[tuple[torch.Tensor, float]]] = {}

    @property
    def tells(self) -> bool:
        """Whether anything was seen that is worth a record."""
        return self.looking or bool(self._sums)

    def model_called(self, path: str, module: Any, args: Any, kwargs: Any) -> None:
        """The outermost call of a model."""
        self.calls += 1
        if self.training is None:
            self.training = bool(module.training)
        if self.looking and not self._batch:
            self._batch = batches.tensors_in([list(args), kwargs])
            self._told["inputs"] = batches.inputs(self._look, [list(args), kwargs])
            self._told["modes"] = {
                name: part.training
                for name, part in module.named_modules()
                if part.training is not module.training
            }

    def layer_called(self, path: str, kind: str, output: Any) -> None:
        """A layer without layers of its own has given its output."""
        tensor = next((tensor for _, tensor in batches.tensors_in([output])), None)
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return
        self._made_by(tensor, path)
        if path in self._layers or len(self._layers) >= MOST_LAYERS:
            return
        self._layers[path] = self._described(kind, tensor)
        self._order.append([path, kind])

    def activated(self, name: str, source: Any, output: Any, within: str) -> None:
        """A function of torch was called in a forward pass; it belongs to the layer before it."""
        if not isinstance(output, torch.Tensor) or not output.numel():
            return
        before = self._makers.get(id(source), within)
        path = f"{before}:{name}"
        self._made_by(output, before)
        if path in self._layers or len(self._layers) >= MOST_LAYERS:
            return
        self._layers[path] = self._described(name, output)
        self._order.append([path, name])

    def value(self, name: str, value: Any) -> None:
        """A tensor that the user has chosen; of what holds several the first."""
        tensor = next((tensor for _, tensor in batches.tensors_in([value])), None)
        if not self.looking or tensor is None:
            return
        told = self._told.setdefault("values", {})
        if name not in told and len(told) < MOST_LAYERS:
            told[name] = {"shape": list(tensor.shape)}
            self._look.add(told[name], SPREAD, spread(tensor))

    def _described(self, kind: str, tensor: torch.Tensor) -> dict[str, Any]:
        described: dict[str, Any] = {"shape": list(tensor.shape)}
        bounds = _SATURATION.get(kind.lower(), _NEVER)
        self._look.add(described, ACTIVATION, activation(tensor, *bounds))
        return described

    def _made_by(self, tensor: torch.Tensor, path: str) -> None:
        # Held until the scene ends, so that no other tensor gets its identity.
        if self.looking and len(self._outputs) < MOST_LAYERS:
            self._outputs.append(tensor)
            self._makers[id(tensor)] = path

    def let_go(self) -> None:
        """Keeps no tensor of the job beyond its forward pass."""
        self._outputs.clear()
        self._makers.clear()

    def loss_called(self, name: str, value: Any, output: Any, target: Any) -> None:
        """A loss function was called."""
        count = float(output.shape[0]) if output.dim() else 1.0
        if self.evaluating:
            self._sum("loss", value.detach().mean(), count)
        right = _right(name, output, target)
        if right is not None and (self.evaluating or self.looking):
            self._sum("accuracy", right, count)
        if not self.looking or "target" in self._told:
            return
        self._told["function"] = name
        self._told["output"] = told = {"shape": list(output.shape)}
        self._look.add(told, VALUES, values(output))
        if output.dim() > 1 and output.shape[1] > 1:
            sums = output.detach().float().sum(1)
            numbers = torch.stack([sums.mean(), sums.std(unbiased=False)])
            self._look.add(told, ("sums", "sums_spread"), numbers)
        if output.dim() and output.shape[0] > 1:
            rows = output.detach().reshape(output.shape[0], -1)[:256, :256].float()
            between = rows.std(0, unbiased=False).mean()
            self._look.add(told, ("between_examples",), between.reshape(1))
        if isinstance(target, torch.Tensor) and target.numel():
            self._told["target"] = batches.labels(self._look, target)
            self._compare_with_inputs(target)

    def _compare_with_inputs(self, target: torch.Tensor) -> None:
        batch = next((tensor for _, tensor in self._batch if tensor.dim() > 1), None)
        if batch is None or not self._told["target"].get("whole"):
            return
        if target.numel() == target.shape[:1].numel() == batch.shape[0]:
            self._told["likeness"] = batches.likeness(batch, target)
            of_rows = target.detach().reshape(-1)[: batches.MOST_ROWS].tolist()
            self._told["row_labels"] = [int(value) for value in of_rows]

    def compared(self, left: Any, right: Any, result: Any) -> None:
        """Predictions were compared with labels, as accuracy is computed."""
        same = isinstance(right, torch.Tensor) and left.shape == right.shape and left.dim() > 0
        if same and not left.is_floating_point() and not right.is_floating_point():
            self._sum("agreement", result.float().mean(), float(left.numel()))

    def _sum(self, name: str, value: torch.Tensor, count: float) -> None:
        self._sums.setdefault(name, []).append((value.detach().float().reshape(1), count))

    def ended(self) -> dict[str, Any]:
        """What was seen, numbers fetched."""
        told, self._told = self._told, {}
        for name, parts in self._sums.items():
            means: dict[str, Any] = {}
            self._look.add(
                means, [str(n) for n in range(len(parts))], torch.cat([v for v, _ in parts])
            )
            told[f"_{name}"] = (means, [count for _, count in parts])
        self._look.read()
        for name in self._sums:
            means, counts = told.pop(f"_{name}")
            total = sum(counts) or 1.0
            told[name] = sum(v * n for v, n in zip(means.values(), counts, strict=True)) / total
            told["examples"] = total
        for described in told.get("inputs", ()):
            if "rows" in described:
                described["rows"] = [f"{number:.9g}" for number in described["rows"].values()]
        if self._layers:
            told["layers"], told["order"] = self._layers, self._order
        self._batch = []
        self.let_go()
        return {"calls": self.calls, "training": self.training, **told}


def _right(name: str, output: torch.Tensor, target: Any) -> torch.Tensor | None:
    """The share of examples whose class is predicted; None where that is no such loss."""
    if not isinstance(target, torch.Tensor):
        return None
    if name in _OF_CLASSES and output.dim() > 1 and not target.is_floating_point():
        predicted = output.detach().argmax(1)
        if predicted.shape == target.shape:
            kept = target >= 0
            return ((predicted == target) & kept).float().sum() / kept.float().sum().clamp(min=1)
    if name in _OF_TWO and output.shape == target.shape:
        bound = 0.5 if name == "binary_cross_entropy" else 0.0
        return ((output.detach() > bound) == (target > 0.5)).float().mean()
    return None
