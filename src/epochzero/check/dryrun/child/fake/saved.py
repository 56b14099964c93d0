"""`torch.save` and `torch.load` of fakes: a small file that keeps names, shapes, types and devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from epochzero.check.dryrun.child.fake.replace import replaced
from epochzero.check.dryrun.child.fake.values import known, remember

__all__ = ["by_shape", "rebuild"]

# Where the tensors of a file that is being loaded go: the `map_location` of each load under way.
_places: list[Any] = []


def rebuild(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    gradient: bool,
    parameter: bool,
    value: Any,
) -> torch.Tensor:
    """The fake tensor that was saved, where `map_location` wants it."""
    place = _places[-1] if _places else None
    if isinstance(place, dict):
        place = place.get(device, device)
    if place is None or callable(place):
        place = "cpu" if callable(place) else device
    from epochzero.check.dryrun.child.fake import current

    with current().fakes:
        tensor = torch.empty_strided(shape, stride, dtype=dtype, device=place)
    if value is not None:
        remember(tensor, torch.tensor(value, dtype=dtype, device="cpu"))
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=gradient)
    return tensor.requires_grad_() if gradient else tensor


def _reduce(tensor: FakeTensor, protocol: Any) -> Any:
    value = known(tensor)
    return rebuild, (
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.dtype,
        str(tensor.fake_device),
        tensor.requires_grad,
        isinstance(tensor, torch.nn.Parameter),
        None if value is None else value.tolist(),
    )


@contextmanager
def by_shape() -> Iterator[None]:
    """Fake tensors are saved and loaded by what is known of them."""
    load = torch.load

    def load_to(f: Any, map_location: Any = None, *arguments: Any, **options: Any) -> Any:
        _places.append(map_location)
        try:
            return load(f, map_location, *arguments, **options)
        finally:
            _places.pop()

    with ExitStack() as stack:
        stack.enter_context(replaced(FakeTensor, {"__reduce_ex__": _reduce}))
        stack.enter_context(replaced(torch, {"load": load_to}))
        stack.enter_context(torch.serialization.safe_globals([rebuild]))
        yield
