"""A classifier as the tests see it: logits for a batch, whatever the model is made with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any, Protocol

import torch
from torch import Tensor, fx, nn

from epochzero.errors import InputError
from epochzero_models.examples import Examples
from epochzero_models.layers import LayerCall, Layers
from epochzero_models.layers.keras import KerasLayers
from epochzero_models.layers.modules import ModuleLayers
from epochzero_models.layers.torch_export import ExportedLayers, is_program
from epochzero_models.layers.torchscript import ScriptedLayers

BATCH_SIZE = 256
BATCH_BYTES = 64 << 20
"""A batch of large inputs has fewer of them."""
SMALLEST_PROBABILITY = 1e-12


class ProgressCallback(Protocol):
    """Called with what is being done, and with the numbers of units that are done and that there are, if these are known."""

    def __call__(self, doing: str, done: int = 0, total: int = 0) -> None: ...


@dataclass(frozen=True, eq=False)
class Classifier:
    """A model that gives a score for each class.

    Attributes:
        name: as the user named it.
        forward: the raw outputs of a batch on ``device``.
        device: where batches go.
        module: what can be differentiated; None where there are no gradients.
        no_gradients: why there are none; empty where there are.
        no_layers: why the outputs of its layers cannot be seen; empty where they can.
        layers: its layers; None where they cannot be seen.
    """

    name: str
    forward: Callable[[Tensor], Any]
    device: torch.device
    module: nn.Module | None = None
    no_gradients: str = ""
    no_layers: str = ""
    layers: Layers | None = None

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits, shape (n, classes); of a model that gives probabilities their logarithms.

        Raises:
            InputError: the model fails on them, or gives no score for each class.
        """
        with self._telling(inputs):
            raw = self.forward(as_tensor(inputs).to(self.device))
        return _as_logits(raw, len(inputs), self.name)

    def seen(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Tensor, list[LayerCall]]:
        """Logits, and what the wanted layers give on the way to them.

        Raises:
            InputError: as `logits`, or layers cannot be seen.
        """
        layers = self.layered()
        with self._telling(inputs):
            raw, calls = layers.run(as_tensor(inputs).to(self.device), wanted)
        return _as_logits(raw, len(inputs), self.name), calls

    @contextmanager
    def _telling(self, inputs: Tensor) -> Iterator[None]:
        """What fails on inputs is told with their shape."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            message = " ".join(str(error).split())
            raise InputError(
                f"{self.name}: fails on inputs of shape {tuple(inputs.shape)}, {inputs.dtype}: "
                f"{type(error).__name__}: {message[:300]}"
            ) from error

    def layered(self) -> Layers:
        """The layers.

        Raises:
            InputError: they cannot be seen.
        """
        if self.layers is None:
            raise InputError(f"{self.name}: {self.no_layers or 'its layers cannot be inspected'}")
        return self.layers

    def differentiable(self) -> nn.Module:
        """The module that has gradients.

        Raises:
            InputError: it has none.
        """
        if self.no_gradients or self.module is None:
            raise InputError(f"{self.name}: {self.no_gradients or 'it has no gradients'}")
        return self.module


def as_tensor(inputs: Any) -> Tensor:
    """Return inputs if they are a tensor.

    Raises:
        InputError: they are not. Converting them here would guess their type, on which results depend.
    """
    if isinstance(inputs, Tensor):
        return inputs
    raise InputError(
        f"inputs must be a torch.Tensor, not {type_name(inputs)}; convert them with torch.as_tensor"
    )


def type_name(value: Any) -> str:
    """Return the name of a value's type with its module, as users import it."""
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def as_classifier(model: Classifier | nn.Module, name: str = "") -> Classifier:
    """Return a module as a `Classifier`. The module is put into evaluation mode and stays in it.

    Raises:
        InputError: it is not a module.
    """
    if isinstance(model, Classifier):
        return model
    if not isinstance(model, nn.Module):
        hint = "its module()" if isinstance(model, torch.export.ExportedProgram) else "load_model"
        raise InputError(
            f"the model must be a torch.nn.Module, not {type_name(model)}; pass the result of {hint}"
        )
    if is_program(model):
        # torch refuses to change its mode, which attacks and training set.
        vars(model).update(train=MethodType(_unchanged, model), eval=MethodType(_unchanged, model))
    model.eval()
    weights = next(model.parameters(), None)
    device = weights.device if weights is not None else torch.device("cpu")
    return Classifier(name or type(model).__name__, model, device, model, layers=_layers_of(model))


def _unchanged(model: nn.Module, _: bool = True) -> nn.Module:
    return model


def _layers_of(model: nn.Module) -> Layers:
    if isinstance(model, fx.GraphModule) and is_program(model):
        return ExportedLayers(model)
    if isinstance(model, torch.jit.ScriptModule):
        return ScriptedLayers(model)
    if any(class_.__module__.partition(".")[0] == "keras" for class_ in type(model).__mro__):
        return KerasLayers(model)
    return ModuleLayers(model)


def batches(examples: Examples) -> Iterator[Tensor]:
    """The inputs in parts of at most `BATCH_SIZE`, and of `BATCH_BYTES`."""
    number = max(1, examples.inputs[0].numel() * examples.inputs.element_size())
    size = max(1, min(BATCH_SIZE, BATCH_BYTES // number))
    for start in range(0, len(examples), size):
        yield examples.inputs[start : start + size]


def logits_of(
    classifier: Classifier,
    examples: Examples,
    on_progress: ProgressCallback | None = None,
) -> Tensor:
    """Logits of all examples on the CPU, shape (n, classes), float32.

    Raises:
        InputError: the model fails, gives no score for each class or one that is not finite, or the
            labels are not among its classes.
    """
    found: list[Tensor] = []
    done = 0
    with torch.no_grad():
        for batch in batches(examples):
            found.append(classifier.logits(batch).float().cpu())
            done += len(batch)
            if on_progress:
                on_progress(f"{classifier.name}: examples", done, len(examples))
    logits = torch.cat(found)
    _check_finite(classifier.name, logits)
    check_labels(classifier.name, logits.shape[1], examples)
    return logits


def check_labels(name: str, classes: int, examples: Examples) -> None:
    """Refuses labels that are not among the classes.

    Raises:
        InputError: one is not, or names were numbered although some classes are missing.
    """
    if examples.classes and len(examples.classes) != classes:
        names = examples.classes[:5]
        others = " and others" if len(names) < len(examples.classes) else ""
        raise InputError(
            f"{examples.name}: labels have {len(examples.classes)} different names ({', '.join(names)}{others}), but "
            f"{name} has {classes} outputs, so it is unknown which name belongs to which output. Replace the names "
            f"with the class numbers of the training, 0 to {classes - 1}"
        )
    low, high = int(examples.labels.min()), int(examples.labels.max())
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        at = int((examples.labels == wrong).nonzero()[0])
        raise InputError(
            f"{examples.name}: example {at + 1} has the label {wrong}, but {name} has {classes} "
            f"outputs: labels must be 0 to {classes - 1}"
        )


def _check_finite(name: str, logits: Tensor) -> None:
    bad = ~logits.isfinite().all(dim=1)
    if bad.any():
        at = int(bad.nonzero()[0])
        raise InputError(
            f"{name}: returns NaN or infinity for {int(bad.sum()):,} of {len(bad):,} examples, the first of them "
            f"example {at + 1}; check its weights and that input"
        )


def _as_logits(raw: Any, count: int, name: str) -> Tensor:
    scores = _scores(raw)
    if not isinstance(scores, Tensor):
        raise InputError(
            f"{name}: returns {_described(raw)}; expected a tensor with a score for each class, "
            "shape (n, classes), or a tuple that begins with it, or a mapping with 'logits'"
        )
    if scores.ndim != 2 or len(scores) != count or scores.shape[1] < 2:
        joined = "torch.stack" if scores.ndim == 1 else "torch.cat"
        hint = f". A single logit z becomes two by {joined}((0 * z, z), dim=1)"
        raise InputError(
            f"{name}: returns outputs of shape {tuple(scores.shape)} for {count} examples; expected one score per "
            f"class, shape (n, classes) with at least two classes{hint if scores.numel() == count else ''}"
        )
    return scores.clamp_min(SMALLEST_PROBABILITY).log() if _are_probabilities(scores) else scores


def _scores(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        return raw.get("logits")
    return raw[0] if isinstance(raw, tuple | list) and raw else raw


def _are_probabilities(scores: Tensor) -> bool:
    """Whether all rows are distributions, which logits are by no accident."""
    sums = scores.detach().sum(dim=1)
    return bool((scores >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all())


def _described(raw: Any) -> str:
    if isinstance(raw, Mapping):
        return f"a mapping with {', '.join(map(repr, list(raw)[:5])) or 'nothing'}"
    if isinstance(raw, tuple | list):
        return (
            f"a {type(raw).__name__} of {', '.join(type(v).__name__ for v in raw[:5]) or 'nothing'}"
        )
    return f"a {type(raw).__name__}"
