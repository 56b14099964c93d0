"""What Keras is given for a training besides its model: data, batches, weights of classes, schedules, clipping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

USUAL_BATCH = 32
"""Default of ``fit``: Keras' documentation, "Model training APIs"."""
_CLIPPINGS = {
    "clipnorm": "clip_grad_norm_",
    "global_clipnorm": "clip_grad_norm_",
    "clipvalue": "clip_grad_value_",
}
_SCHEDULES = ("LearningRateScheduler", "ReduceLROnPlateau")


def loader_of(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The batches of a ``fit`` over arrays, as of a loader of torch; None for data that come in batches.

    Args:
        given: the arguments of ``fit``, by their names.
    """
    first = _first(given.get("x"))
    if not hasattr(first, "shape") or not first.shape or given.get("steps_per_epoch"):
        return None
    examples = int(first.shape[0])
    if given.get("validation_data") is None:
        examples = int(examples * (1 - (given.get("validation_split") or 0.0)))
    return {
        "batch_size": given.get("batch_size") or USUAL_BATCH,
        "sampler": "RandomSampler" if given.get("shuffle", True) else "SequentialSampler",
        "drop_last": False,
        "examples": examples,
    }


def _first(value: Any) -> Any:
    """The first array of what may be a list or a dictionary of several."""
    while isinstance(value, (list, tuple, dict)) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


def class_weights(given: Mapping[str, Any]) -> list[float] | None:
    """The weights of the classes in their order; None for none."""
    weights = given.get("class_weight")
    return [float(weights[label]) for label in sorted(weights)] if weights else None


def schedules_of(optimizer: Any, callbacks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """What changes the learning rate, with its settings: a schedule of the optimizer, and callbacks."""
    inside = getattr(optimizer, "_learning_rate", None)
    found = [callback for callback in callbacks if type(callback).__name__ in _SCHEDULES]
    if hasattr(inside, "get_config"):
        found.append(inside)
    for schedule in found:
        settings = {
            name: value
            for name, value in vars(schedule).items()
            if isinstance(value, (bool, int, float, str))
        }
        yield {"class": type(schedule).__name__, "settings": settings}


def clipping_of(optimizer: Any) -> tuple[str, str, float] | None:
    """The setting that clips gradients, the function of torch that does the same, and the limit."""
    for setting, function in _CLIPPINGS.items():
        limit = getattr(optimizer, setting, None)
        if limit:
            return setting, function, float(limit)
    return None


def norm_of(setting: str, norms: Iterable[float]) -> float:
    """The norm that is compared with the limit: of all gradients, or the largest of those of one weight."""
    if setting == "global_clipnorm":
        return float(sum(norm**2 for norm in norms) ** 0.5)
    return max(norms, default=0.0)
