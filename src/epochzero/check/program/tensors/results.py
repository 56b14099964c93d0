"""The effect of calls on the sizes of tensors."""

from __future__ import annotations

from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, LibraryResult, Member, V, held
from epochzero.check.program.tensors.functions import FUNCTIONS, SOURCES, TensorFunction
from epochzero.check.program.tensors.layers import LAYERS
from epochzero.check.program.tensors.parameters import Given
from epochzero.check.program.tensors.values import NotKnown, Tensor, as_value
from epochzero.check.program.values import Anything

_FUNCTIONAL = ("torch.nn.functional", "torch", "torch.Tensor")
_SAME_LAYER = frozenset(
    """
    to cuda cpu half float double bfloat16 eval train requires_grad_ apply
    """.split()
)
_HOLDERS = ("torch.nn.Sequential", "torch.nn.ModuleList")


def of_function(name: str, given: Arguments) -> V | None:
    """Return the result of a function or class of a library; None if its sizes are unknown.

    Raises:
        Misfit: it certainly rejects the sizes.
    """
    if not given.complete:
        return None
    module, _, last = name.rpartition(".")
    if name in _HOLDERS:
        return _modules(name, given)
    found = SOURCES.get(name) or (FUNCTIONS.get(last) if module in _FUNCTIONAL else None)
    return _result(found, given.positional, given.keywords) if found is not None else None


def _result(function: TensorFunction, positional: list[V], keywords: dict[str, V]) -> V | None:
    try:
        return function.gives(Given(function.names, positional, keywords))
    except NotKnown:
        return None


def _modules(name: str, given: Arguments) -> V | None:
    """The modules of a module container, as a list."""
    if given.keywords:
        return None
    if name == "torch.nn.ModuleList" or (
        len(given.positional) == 1 and isinstance(given.positional[0], Box)
    ):
        box = given.positional[0] if given.positional else Box.of("list", ())
        if not isinstance(box, Box):
            return None
        return Box.of("list", box.content.values, (), box.content.complete)
    return Box.of("list", given.positional)


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


def of_method(owner: V, name: str, given: Arguments) -> V | None:
    """Return the result of a method of a tensor or a call of a layer; None if its sizes are unknown.

    Raises:
        Misfit: it certainly rejects the sizes.
    """
    if not given.complete:
        return None
    if name == "__call__":
        return _called(_layer_of(owner), given)
    if isinstance(held(owner), Tensor) and (found := FUNCTIONS.get(name)) is not None:
        return _result(found, [owner, *given.positional], given.keywords)
    return None


def _called(layer: LibraryResult | None, given: Arguments) -> V | None:
    if layer is None or not layer.complete or layer.attributes or not given.positional:
        return None
    module, _, last = layer.name.rpartition(".")
    if module != "torch.nn":
        return None
    if (found := LAYERS.get(last)) is None:
        return None
    x = held(given.positional[0])
    parameters = Given(found.names, layer.arguments, layer.keywords)
    try:
        return found.of(parameters, x if isinstance(x, Tensor) else None)
    except NotKnown:
        return None


def attribute_of(owner: V, name: str) -> V | None:
    """Return the shape or the data of a tensor; None for other attributes."""
    if not isinstance(owner, (LibraryResult, Member, Tensor)) or not isinstance(
        x := held(owner), Tensor
    ):
        return None
    if name in ("data", "real"):
        return x
    if x.is_last:
        return None
    if name == "shape":
        return Box.of("tuple", map(as_value, x.shape))
    return None


def item_of(owner: V) -> V | None:
    """Return a tensor of unknown shape for ``x[key]`` of a tensor; None for other values."""
    is_tensor = isinstance(owner, (LibraryResult, Member, Tensor)) and isinstance(
        held(owner), Tensor
    )
    return Anything("a part of a tensor") if is_tensor else None
