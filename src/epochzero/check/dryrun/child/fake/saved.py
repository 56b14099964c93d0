"""Fakes are saved and loaded by their shapes, types and devices: small files, whatever the model's size.

`torch.save` writes how each fake is made again. A file of safetensors is read by code of its own, so it is
a true one: its header, and data that are a hole in the file.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from epochzero.check.dryrun.child.fake.mode import current
from epochzero.check.dryrun.child.fake.values import known, remember
from epochzero.check.dryrun.child.resume import path_of
from epochzero.injected.patches import replaced

_sizes: list[dict[int, int]] = []
"""Of the files that are being saved: the bytes of each storage in them."""
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

    with current().fakes:
        tensor = torch.empty_strided(shape, stride, dtype=dtype, device=place)
    if value is not None:
        remember(tensor, torch.tensor(value, dtype=dtype, device="cpu"))
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=gradient)
    return tensor.requires_grad_() if gradient else tensor


def _reduce(tensor: FakeTensor, protocol: Any) -> Any:
    value = known(tensor)
    storage = tensor.untyped_storage()
    if _sizes:
        _sizes[-1][storage._cdata] = storage.nbytes()
    return rebuild, (
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.dtype,
        str(tensor.fake_device),
        tensor.requires_grad,
        isinstance(tensor, torch.nn.Parameter),
        None if value is None else value.tolist(),
    )


_SAFE = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


def _save_safe(tensors: dict[str, Any], filename: Any, metadata: Any = None) -> None:
    """As `safetensors.torch.save_file`; the format: github.com/huggingface/safetensors#format."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    position = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _SAFE[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(filename, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + position)


@contextmanager
def by_shape(saved: Callable[[str, int], None]) -> Iterator[None]:
    """Fake tensors are saved and loaded by what is known of them.

    Args:
        saved: Called with the path of each file that `torch.save` writes, and how many bytes its tensors have.
    """
    load, save = torch.load, torch.save

    def save_to(obj: Any, f: Any, *arguments: Any, **options: Any) -> None:
        _sizes.append({})
        try:
            save(obj, f, *arguments, **options)
        finally:
            size = sum(_sizes.pop().values())
        if path := path_of(f):
            saved(path, size)

    def load_to(f: Any, map_location: Any = None, *arguments: Any, **options: Any) -> Any:
        _places.append(map_location)
        try:
            return load(f, map_location, *arguments, **options)
        finally:
            _places.pop()

    with ExitStack() as stack:
        stack.enter_context(replaced(FakeTensor, {"__reduce_ex__": _reduce}))
        stack.enter_context(replaced(torch, {"load": load_to, "save": save_to}))
        if importlib.util.find_spec("safetensors"):
            safe = importlib.import_module("safetensors.torch")
            save_real = safe.save_file

            def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
                fake = any(isinstance(tensor, FakeTensor) for tensor in tensors.values())
                (_save_safe if fake else save_real)(tensors, filename, metadata)

            stack.enter_context(replaced(safe, {"save_file": save_file}))
        stack.enter_context(torch.serialization.safe_globals([rebuild]))
        yield
