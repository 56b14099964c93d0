"""A layer with parameters that is made and never called, or whose result is thrown away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from epochzero.run.watch.faults._signals import does_well
from epochzero.run.watch.history import Parameter, TrainingHistory
from epochzero.run.watch.lines.layers import ignores_an_argument, omission_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Leaves that no forward pass has called while their neighbors were, or that a trained one goes around."""
    if len(history.iterations) < 4:
        return
    yield from _gone_around(history)
    used = {
        name
        for iteration in history.iterations
        for name, of in iteration.parameters.items()
        if of.get("gradient", {}).get("largest", 0.0) > 0
    }
    for layer in history.layers:
        names = [f"{layer.path}.{name}" for name in layer.parameters]
        if (
            layer.kind in ("ParameterList", "ParameterDict")
            or not layer.leaf
            or layer.called
            or not names
            or any(name in used for name in names)
            or not _is_asked(history, layer.path)
        ):
            continue
        parent = history.layer(layer.path.rpartition(".")[0])
        # A whole part that is not called may be for another task.
        if parent is not None and not parent.called and parent.path:
            continue
        yield TrainingFinding(
            "layer_unused",
            0,
            f"{layer.path} ({layer.kind}) is created, but no forward pass calls it.",
            layer=layer.path,
            place=omission_place(layer),
            confidence=0.9 if ignores_an_argument(layer) else 0.56 if does_well(history) else 0.8,
            fix="Call it in forward, or remove it.",
        )
        return


def _gone_around(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Layers without a gradient, and one that is trained and takes what they were given, not what they give."""
    first = next((iteration for iteration in history.iterations if iteration.layers), None)
    if first is None:
        return
    source = {path: str(first.layers.get(path, {}).get("source", "")) for path, _ in history.order}
    trained = [path for path in source if _has_gradient(history, path)]
    around = {source[path]: path for path in trained if source[path]}
    left = [
        layer
        for layer in history.layers
        if layer.parameters and around.get(source.get(layer.path, "")) and layer.path not in trained
    ]
    if not left or len(trained) < 2 or not all(_is_asked(history, layer.path) for layer in left):
        return
    path = _common([layer.path for layer in left]) or left[0].path
    other = around[source[left[0].path]]
    yield TrainingFinding(
        "layer_unused",
        0,
        f"{path} is called, but its output is discarded: {other} takes the same input.",
        layer=path,
        place=left[0].place,
        confidence=0.56 if does_well(history) else 0.88,
        fix="Pass its output to the next layer, or remove it.",
        evidence={"layers": float(len(left))},
    )


def _common(paths: Sequence[str]) -> str:
    """The module that holds all of them; empty for the model itself."""
    words = [path.split(".") for path in paths]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return ".".join(column[0] for column in shared)


def _of(history: TrainingHistory, path: str) -> list[Parameter]:
    return [param for param in history.parameters if param.layer == path and len(param.shape) > 1]


def _has_gradient(history: TrainingHistory, path: str) -> bool:
    return any(
        iteration.parameters.get(parameter.name, {}).get("gradient", {}).get("largest", 0.0) > 0
        for parameter in _of(history, path)
        for iteration in history.iterations
    )


def _is_asked(history: TrainingHistory, path: str) -> bool:
    """Whether an optimizer holds its weights, which ask for gradients and never get any."""
    own = _of(history, path)
    return bool(own) and all(
        parameter.trainable
        and parameter.held
        and not any(
            "gradient" in looked.parameters.get(parameter.name, {}) for looked in history.iterations
        )
        for parameter in own
    )
