"""Output shapes of functions of `torch` and `torch.nn.functional`, of methods of tensors, and of calls of layers.

Source: PyTorch documentation, torch, torch.Tensor and torch.nn.functional; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, LibraryResult, V, held
from epochzero.check.program.tensors.layers import LAYERS, Given
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Tensor,
    as_value,
    differ,
    number,
    product,
    quotient,
    shown,
)

_FUNCTIONAL = ("torch.nn.functional", "torch", "torch.Tensor")
_CREATING = ("torch.rand", "torch.randn", "torch.zeros", "torch.ones")
_HOLDERS = ("torch.nn.Sequential", "torch.nn.ModuleList")
_SAME_LAYER = "to cuda cpu half float double bfloat16 eval train requires_grad_ apply".split()
_SAME_SHAPE = frozenset(
    """
    to cuda cpu float long half double bfloat16 detach clone contiguous exp log sqrt abs square
    clamp roll as_tensor from_numpy zeros_like ones_like
    """.split()
)
_LAYERS = {name.lower(): layer for name, layer in LAYERS.items() if not layer.wanted}
"""Layers without parameters to learn, which are functions too: ``max_pool2d``, ``leaky_relu``."""


def of_function(name: str, given: Arguments) -> V | None:
    """Return the result of a function or class of a library; None if its sizes are unknown.

    Raises:
        Misfit: it certainly rejects the sizes.
        NotKnown: its sizes depend on something unknown.
    """
    module, _, last = name.rpartition(".")
    if not given.complete:
        return None
    if name in _HOLDERS:
        return _modules(name, given)
    if name in _CREATING:
        return Tensor(shape=tuple(Given("", given.positional, given.keywords).rest(0, "size")))
    return _computed(last, given.positional, given.keywords) if module in _FUNCTIONAL else None


def of_method(owner: V, name: str, given: Arguments) -> V | None:
    """Return the result of a method of a tensor or a call of a layer; None if its sizes are unknown.

    Raises:
        Misfit: it certainly rejects the sizes.
        NotKnown: its sizes depend on something unknown.
    """
    if not given.complete:
        return None
    if name == "__call__":
        return _called(_layer_of(owner), given.positional)
    return _computed(name, [owner, *given.positional], given.keywords)


def _modules(name: str, given: Arguments) -> V | None:
    """The modules of a module container, as a list."""
    modules = given.positional
    if given.keywords:
        return None
    if name == "torch.nn.Sequential" and not (len(modules) == 1 and isinstance(modules[0], Box)):
        return Box.of("list", modules)
    box = modules[0] if modules else Box.of("list", ())
    if not isinstance(box, Box):
        return None
    return Box.of("list", box.content.values, (), box.content.complete)


def modules_of(value: V, *kinds: str) -> Box | None:
    """The known modules of a container of one of these kinds, or of any kind."""
    layer = _layer_of(value)
    if layer is None or layer.name not in (kinds or _HOLDERS) or layer.attributes:
        return None
    return layer.holds if isinstance(layer.holds, Box) else None


def _layer_of(value: V | None) -> LibraryResult | None:
    """A layer without ``.to(device)`` and similar methods."""
    while isinstance(value, LibraryResult) and value.receiver is not None:
        if value.name.rpartition(".")[2] not in _SAME_LAYER:
            return None
        value = value.receiver
    return value if isinstance(value, LibraryResult) else None


def _called(layer: LibraryResult | None, positional: Sequence[V]) -> V | None:
    if layer is None or not layer.complete or layer.attributes or not positional:
        return None
    module, _, last = layer.name.rpartition(".")
    x = held(positional[0])
    x = x if isinstance(x, Tensor) else None
    if module != "torch.nn":
        return None
    if last == "Flatten" and x is not None and not x.is_last:
        return _flattened(x.shape, Given("start_dim end_dim", layer.arguments, layer.keywords), 1)
    if (found := LAYERS.get(last)) is None:
        return None
    return found.output(last, Given(found.parameters, layer.arguments, layer.keywords), x)


def _computed(name: str, positional: Sequence[V], keywords: Mapping[str, V]) -> V | None:
    """The result of a function or method whose first argument is a tensor."""
    x = held(positional[0] if positional else keywords.get("input"))
    if not isinstance(x, Tensor):
        return None
    if name in _SAME_SHAPE:
        return x
    if layer := _LAYERS.get(name.replace("_", "")):
        return layer.output("", Given(layer.parameters, positional[1:], keywords), x)
    if x.is_last:
        return None
    if name in ("view", "reshape"):
        return _reshaped(x.shape, Given("input shape", positional, keywords).rest(1, "shape"))
    if name == "flatten":
        return _flattened(x.shape, Given("input start_dim end_dim", positional, keywords), 0)
    return _size(x.shape, Given("input dim", positional, keywords)) if name == "size" else None


def _reshaped(shape: Shape, sizes: Sequence[Dim]) -> Tensor:
    whole, rest = product(shape), product(size for size in sizes if size != -1)
    inferred = sizes.count(-1)
    if inferred > 1:
        raise NotKnown
    missing = quotient(whole, rest) if inferred else rest
    if missing is None or (not inferred and differ(whole, rest)):
        raise Misfit(
            f"shape '{shown(sizes)}' is invalid for input of size {number(whole)}",
            f"A tensor of {shown(shape)} is given the shape {shown(sizes)}.",
            "Make the product of the sizes the number of values of a tensor.",
        )
    return Tensor(shape=tuple(missing if size == -1 else size for size in sizes))


def _flattened(shape: Shape, given: Given, start: int) -> Tensor:
    """A tensor whose axes from ``start_dim``, by default ``start``, to ``end_dim`` are flattened."""
    first = _axis(shape, given.known("start_dim", start))
    behind = _axis(shape, given.known("end_dim", -1)) + 1
    if first >= behind:
        raise NotKnown
    return Tensor(shape=(*shape[:first], product(shape[first:behind]), *shape[behind:]))


def _size(shape: Shape, given: Given) -> V:
    sizes = [*map(as_value, shape)]
    if not given.has("dim"):
        return Box.of("tuple", sizes)
    return sizes[_axis(shape, given.known("dim", None))]


def _axis(shape: Shape, axis: object) -> int:
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise NotKnown
    return axis % len(shape)


def attribute_of(owner: V, name: str) -> V | None:
    """Return the shape or the data of a tensor; None for other attributes."""
    x = held(owner)
    if not isinstance(x, Tensor):
        return None
    if name in ("data", "real"):
        return x
    return Box.of("tuple", map(as_value, x.shape)) if name == "shape" and not x.is_last else None
