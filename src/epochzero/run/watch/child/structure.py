"""What a model is made of: its layers in the order of their calls, its parameters, and where each was made."""

from __future__ import annotations

from typing import Any

import torch

from epochzero.run.watch.child.statistics import GRADIENT, Look, few, fingerprint, gradient

MOST_LAYERS = 2000
MOST_WEIGHTS = 32
# Settings of a layer that a person chooses.
_SETTINGS = (
    "in_features", "out_features", "in_channels", "out_channels", "kernel_size", "stride",
    "padding", "p", "eps", "momentum", "affine", "track_running_stats", "num_features",
    "normalized_shape", "num_embeddings", "embedding_dim", "hidden_size", "num_layers", "dropout",
    "bidirectional", "negative_slope", "dim", "inplace", "num_groups", "num_heads", "embed_dim",
    "batch_first",
)  # fmt: skip


def inner(module: torch.nn.Module) -> torch.nn.Module:
    """The model within what wraps it for several processes, or for the compiler."""
    while type(module).__name__ in ("DistributedDataParallel", "DataParallel", "OptimizedModule"):
        module = getattr(module, "_orig_mod", None) or module.module  # type: ignore[assignment]
    return module


def weights_of(module: torch.nn.Module) -> dict[str, float]:
    """Return fingerprints that identify a state: of all parameters, or of evenly spaced ones if there are many."""
    look, found = Look(), dict[str, float]()
    named = [(n, p) for n, p in module.named_parameters() if has_values(p) and p.numel()]
    for name, parameter in named[:: -(-len(named) // MOST_WEIGHTS)] if named else ():
        look.add(found, (name,), fingerprint(parameter))
    look.read()
    return found


def settings(module: torch.nn.Module) -> dict[str, Any]:
    """The numbers that a layer was made with."""
    found = {}
    for name in _SETTINGS:
        value = module.__dict__.get(name)
        if isinstance(value, (bool, int, float, str, tuple)):
            found[name] = value
    found["bias"] = getattr(module, "bias", None) is not None
    return found


def described(
    look: Look, model: torch.nn.Module, made: Any, held: set[int] | None, called: Any
) -> dict[str, Any]:
    """The record of a model.

    Args:
        look: collects the numbers.
        model: the outermost module.
        made: place -> of a module, `ByIdentity`.
        held: ids of the parameters that optimizers hold; None when no optimizer is known.
        called: the modules that were called so far, `ByIdentity`.
    """
    layers = [
        {
            "path": path,
            "class": type(module).__name__,
            "library": type(module).__module__.startswith("torch."),
            "leaf": not module._modules,
            "settings": settings(module)
            if not module._modules or hasattr(module, "batch_first")
            else {},
            "parameters": [name for name, value in module._parameters.items() if value is not None],
            "place": made.get(module),
            "called": called.get(module) is True,
            "training": module.training,
        }
        for path, module in list(model.named_modules())[:MOST_LAYERS]
    ]
    return {
        "class": type(model).__name__,
        "layers": layers,
        "parameters": parameters_of(look, model, held),
    }


def parameters_of(
    look: Look, model: torch.nn.Module, held: set[int] | None
) -> list[dict[str, Any]]:
    """Each parameter with its size, whether it can change, and its values now."""
    found = []
    for name, value in list(model.named_parameters())[:MOST_LAYERS]:
        record: dict[str, Any] = {
            "name": name,
            "shape": [] if torch.nn.parameter.is_lazy(value) else list(value.shape),
            "trainable": value.requires_grad,
            "held": held is None or id(value) in held,
        }
        # Of few rows that are spread over many ranks, some ranks have none.
        flat = few(value) if has_values(value) else None
        if flat is not None and flat.numel():
            look.add(record, GRADIENT, gradient(value))
            look.add(record, ("mean", "std"), torch.stack([flat.mean(), flat.std(unbiased=False)]))
        found.append(record)
    return found


def has_values(parameter: torch.Tensor) -> bool:
    """Whether a parameter has values yet."""
    return not torch.nn.parameter.is_lazy(parameter) and not parameter.is_meta
