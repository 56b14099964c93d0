"""What a model of Keras is made of: its layers, its loss, and its weights in numbers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

MOST_ELEMENTS = 8192
# As torch calls what is the same.
_LOSSES = {
    "MeanSquaredError": "mse_loss",
    "MeanAbsoluteError": "l1_loss",
    "Huber": "huber_loss",
    "Poisson": "poisson_nll_loss",
    "BinaryCrossentropy": "binary_cross_entropy",
    "BinaryCrossentropy of logits": "binary_cross_entropy_with_logits",
    "CategoricalCrossentropy of logits": "cross_entropy",
    "SparseCategoricalCrossentropy of logits": "cross_entropy",
}

_OF_CLASSES = ("SparseCategoricalCrossentropy", "CategoricalCrossentropy", "cross_entropy")
_SETTINGS = {
    "rate": "p", "epsilon": "eps", "rho": "alpha", "units": "out_features", "filters": "out_channels",
    "output_dim": "embedding_dim",
}  # fmt: skip


def as_torch(settings: dict[str, Any], kind: str) -> dict[str, Any]:
    """Settings of a layer or an optimizer by the names and in the sense of torch."""
    found = {_SETTINGS.get(name, name): value for name, value in settings.items()}
    if kind == "BatchNormalization" and "momentum" in found:
        # Of Keras the share that stays, of torch the share that is new.
        found["momentum"] = 1 - found["momentum"]
    if "beta_1" in found and "beta_2" in found:
        found["betas"] = [found["beta_1"], found["beta_2"]]
    return found


def shape_of(name: str, shape: tuple[int, ...]) -> list[int]:
    """The sizes of a weight with what it gives first and what it takes behind, as in torch."""
    if name.endswith("kernel") and len(shape) > 1:
        return [shape[-1], shape[-2], *shape[:-2]]
    return list(shape)


def few(values: Any) -> Any:
    """At most so many elements of an array, in short runs at even distances, flat."""
    flat = values.reshape(-1)
    if flat.size > MOST_ELEMENTS:
        length = flat.size // (MOST_ELEMENTS // 8)
        flat = flat[: flat.size // length * length].reshape(-1, length)[:, :8].reshape(-1)
    return flat.astype("float32")


def fingerprint(values: Any) -> float:
    """Return a number that depends on the first elements of an array and on their order."""
    flat = few(values)[:256]
    return float((flat * [math.sin(n + 1) for n in range(len(flat))]).sum())


def numbers(flat: Any) -> dict[str, float]:
    """How large elements are, and how many are zero or not finite; flat, as of `few`."""
    finite = flat[abs(flat) < math.inf]
    largest = float(abs(finite).max()) if finite.size else 0.0
    rms = float(((finite / largest) ** 2).mean() ** 0.5) * largest if largest else 0.0
    zeros, nonfinite = float((flat == 0).mean()), 1 - finite.size / flat.size
    return {"rms": rms, "largest": largest, "zeros": zeros, "nonfinite": nonfinite}


def inside(layer: Any) -> Iterator[Any]:
    """The layers of a layer; the cell of a recurrent one is part of it, as in torch."""
    if _is_recurrent(layer):
        return
    found: Any = getattr(layer, "layers", None) or getattr(layer, "_layers", ())
    for value in found:
        if value is not layer and type(value).__name__ != "InputLayer":
            yield value


def _is_recurrent(layer: Any) -> bool:
    return hasattr(layer, "cell") or hasattr(layer, "cells")


def weights_of(layer: Any) -> Iterator[Any]:
    """The weights that a layer has itself, also those that are frozen; no running means and the like."""
    yield from layer._trainable_variables
    if _is_recurrent(layer):
        for cell in layer._layers:
            yield from weights_of(cell)


def activation_of(layer: Any) -> str | None:
    """What the output of a layer goes through; that of a recurrent one is within it."""
    if _is_recurrent(layer):
        return None
    return getattr(getattr(layer, "activation", None), "__name__", None)


def arguments_of(value: Any) -> dict[str, Any]:
    """Return the arguments of a Keras object that its attributes store as numbers or strings.

    `get_config` returns them too, but to serialize a data type it imports TensorFlow if it is installed. This takes seconds
    of the job's time, and TensorFlow also claims the GPU.
    """
    kind: Any = type(value)
    found = {name: getattr(value, name, None) for name in _parameters(kind)}
    return {name: one for name, one in found.items() if isinstance(one, (bool, int, float, str))}


@cache
def _parameters(kind: type) -> tuple[str, ...]:
    makers = [vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one)]
    names = {name for maker in makers for name in inspect.signature(maker).parameters}
    return tuple(sorted(names - {"self", "name"}))


def settings_of(layer: Any) -> dict[str, Any]:
    """What a layer was made with, by the names of torch: what is a number or a word, and its penalty."""
    settings = arguments_of(layer)
    settings["activation"] = activation_of(layer)
    kernel = next((value for value in weights_of(layer) if value.name == "kernel"), None)
    if kernel is not None and len(kernel.shape) > 1:
        settings["in_features" if len(kernel.shape) == 2 else "in_channels"] = kernel.shape[-2]
    penalty = getattr(layer, "kernel_regularizer", None)
    if penalty is not None:
        # The gradient of a sum of squares is twice the weight.
        settings["weight_decay"] = max(
            2 * float(getattr(penalty, "l2", 0.0)), float(getattr(penalty, "l1", 0.0))
        )
    return as_torch(settings, type(layer).__name__)


def as_compared(target: Any, output: Any, function: str) -> Any:
    """The labels as a loss compares them with an output; classes as their numbers.

    Source: Keras' documentation, "Probabilistic losses"; labels of a rank less get a last dimension of 1.
    """
    target = target.to(output.device)
    if function in _OF_CLASSES:
        if target.shape == output.shape and output.dim() > 1 and output.shape[-1] > 1:
            is_one_hot = ((target == 0) | (target == 1)).all() and (target.sum(-1) == 1).all()
            return target.argmax(-1) if is_one_hot else target
        if target.dim() == output.dim() and target.shape[-1] == 1:
            return target.squeeze(-1)
    elif target.dim() + 1 == output.dim() and output.shape[-1] == 1:
        return target.unsqueeze(-1)
    elif target.shape[1:] == (1,) and output.shape[1:] != (1,):
        return target.squeeze(1)
    return target


def layers_of(model: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """All layers of a model, each behind its path."""
    for layer in inside(model):
        path = f"{before}{layer.name}"
        yield path, layer
        yield from layers_of(layer, f"{path}.")


def loss_of(model: Any, keras: Any) -> tuple[str, dict[str, Any]]:
    """The name of a model's loss, with its settings."""
    loss = model.loss
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    kind = type(loss).__name__ if isinstance(loss, keras.losses.Loss) else ""
    if not kind:
        name = getattr(loss, "__name__", "")
        kind = "".join(part.capitalize() for part in name.split("_"))
    reduction = "sum" if getattr(loss, "reduction", "") == "sum" else "mean"
    logits = bool(getattr(loss, "_fn_kwargs", {}).get("from_logits", False))
    # Nothing is known of a loss that the user wrote.
    known = kind if hasattr(keras.losses, kind) else ""
    name = _LOSSES.get(f"{kind} of logits" if logits else kind, known)
    return name, {"from_logits": logits, "keras": kind, "reduction": reduction}
